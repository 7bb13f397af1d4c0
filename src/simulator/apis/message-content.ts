// Reads a request of the Messages API: its texts for counting, and its turns and tools for choosing an answer.

import { contentTexts, isObject, type Json, objectsIn } from '../json-fields.ts';
import type { ToolChoice, ToolDefinition, Turn } from '../tool-calls.ts';

/** All texts of `system` and the messages, including tool results. */
export function messageTexts(json: Json | null): string[] {
  if (json === null) return [];
  return [...contentTexts(json.system), ...objectsIn(json.messages).flatMap(({ content }) => blockTexts(content))];
}

export function readTurns(json: Json): Turn[] {
  const system: Turn = { role: 'other', text: contentTexts(json.system).join('\n') };
  return [system, ...objectsIn(json.messages).flatMap(turnsOf)];
}

export function readTools(json: Json): ToolDefinition[] {
  return objectsIn(json.tools).flatMap(({ name, type, input_schema: schema }) => {
    // Anthropic runs its own tools (web search and the like) itself.
    const own = type !== undefined && type !== 'custom';
    return typeof name === 'string' && !own ? [{ name, kind: 'function', schema }] : [];
  });
}

export function readToolChoice(choice: unknown): ToolChoice {
  if (!isObject(choice)) return 'auto';
  if (choice.type === 'none') return 'none';
  if (choice.type === 'any') return 'required';
  return choice.type === 'tool' && typeof choice.name === 'string' ? { name: choice.name } : 'auto';
}

/** In a message, tool results come before the user's own words. */
function turnsOf({ role, content }: Json): Turn[] {
  const results = objectsIn(content).filter(({ type }) => type === 'tool_result');
  const text = contentTexts(content).join('\n');
  const turns: Turn[] = results.map((block) => ({ role: 'tool_result', text: contentTexts(block.content).join('\n') }));
  if (text !== '' || turns.length === 0) turns.push({ role: role === 'user' ? 'user' : 'other', text });
  return turns;
}

function blockTexts(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objectsIn(content).flatMap((block) =>
    block.type === 'tool_result' ? contentTexts(block.content) : contentTexts([block]),
  );
}
