// Decides when the simulated model calls a tool, which one and with what: by a directive, by the request's
// `tool_choice`, or by plain words.

import type { Directives } from './directives.ts';
import { isObject, type Json } from './json-fields.ts';

/** One message of a conversation, in any dialect. */
export interface Turn {
  readonly role: 'user' | 'tool_result' | 'other';
  readonly text: string;
}

export interface ToolDefinition {
  readonly name: string;
  /** A `custom` tool takes free text instead of JSON. */
  readonly kind: 'function' | 'custom';
  readonly schema: unknown;
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

export interface ToolCall {
  readonly name: string;
  readonly kind: 'function' | 'custom';
  /** The arguments, or a custom tool's text. */
  readonly input: string;
}

const NAME_WITHOUT_TOOLS = 'lookup';
const SCHEMA_DEPTH_MAX = 8;

interface Situation {
  readonly turns: readonly Turn[];
  readonly tools: readonly ToolDefinition[];
  readonly choice: ToolChoice;
  readonly directives: Directives;
}

/** The tool calls of this answer; empty: it is text. */
export function chooseToolCalls(situation: Situation): readonly ToolCall[] {
  const { tools, choice, directives } = situation;
  if (choice === 'none') return [];
  const name = askedByDirective(situation) ?? askedInWords(situation) ?? askedByChoice(choice);
  if (name === null) return [];
  const tool = (name === '' ? tools[0] : tools.find((offered) => offered.name === name)) ?? {
    name: name || NAME_WITHOUT_TOOLS,
    kind: 'function',
    schema: null,
  };
  const input =
    directives.toolArguments ?? (tool.kind === 'custom' ? 'north' : JSON.stringify(sampleOf(tool.schema, 0)));
  return Array.from({ length: Math.max(1, directives.toolCalls) }, () => ({ name: tool.name, kind: tool.kind, input }));
}

/**
 * The directive stays in the conversation, so it stops applying once enough results follow it; otherwise the loop would
 * never end.
 */
function askedByDirective({ turns, directives }: Situation): string | null {
  if (directives.toolCall === null) return null;
  const asked = turns.findLastIndex(
    ({ role, text }) => role !== 'tool_result' && /\[\[sim[^\]]*\btool_call\b/.test(text),
  );
  const results = turns.slice(asked + 1).filter(({ role }) => role === 'tool_result').length;
  return results < directives.toolRounds * Math.max(1, directives.toolCalls) ? directives.toolCall : null;
}

/** "Use the multiply tool." in the user's latest message, unless a result follows it already. */
function askedInWords({ turns, tools }: Situation): string | null {
  const latest = turns.findLastIndex(({ role }) => role === 'user');
  if (latest === -1 || turns.slice(latest + 1).some(({ role }) => role === 'tool_result')) return null;
  for (const [, named] of (turns[latest]?.text ?? '').matchAll(
    /\b(?:use|call)\s+(?:the\s+)?["'`]?([\w.-]+)["'`]?\s+tool\b/gi,
  )) {
    if (tools.some(({ name }) => name === named)) return named ?? null;
  }
  return null;
}

function askedByChoice(choice: ToolChoice): string | null {
  if (typeof choice === 'object') return choice.name;
  return choice === 'required' ? '' : null;
}

/** A value that matches a JSON schema, always the same one: only required members, the first of each choice. */
function sampleOf(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > SCHEMA_DEPTH_MAX) return depth === 0 ? {} : null;
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives)) return sampleOf(alternatives[0], depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'string':
      return 'north';
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 7;
    case 'boolean':
      return true;
    case 'array':
      return [sampleOf(schema.items, depth + 1)];
    case 'null':
      return null;
    default:
      return sampleObject(schema, depth);
  }
}

function sampleObject(schema: Json, depth: number): Json {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : [];
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name], depth + 1)]));
}
