// POST /v1/responses: reads the request, refuses what OpenAI refuses, and plans the answer. response-events.ts has its
// events, response-store.ts keeps it.

import { seedFrom } from '../generated-text.ts';
import { contentTexts, countTokens, firstWhole, isObject, type Json, objectsIn } from '../json-fields.ts';
import { isBrokenSeal } from '../made-up.ts';
import { planAnswer } from '../planned-answer.ts';
import { scriptedCall } from '../reply-script.ts';
import { chooseToolCalls, type ToolChoice, type ToolDefinition, type Turn } from '../tool-calls.ts';
import { type Api, type CallRequest, emptyTally, type Planned } from './api.ts';
import { invalid, modelError, NOT_JSON, OPENAI_UNAUTHENTICATED, renderOpenaiError } from './openai-errors.ts';
import { ResponseScript } from './response-events.ts';
import type { ResponseStore } from './response-store.ts';
import { TEXT_SCOPES } from './scopes.ts';

/** How much reasoning there is if the request asks for it and no directive sets the amount. */
const REASONING_TOKENS_DEFAULT = 8;
const TOOL_RESULTS: readonly unknown[] = [
  'function_call_output',
  'custom_tool_call_output',
  'local_shell_call_output',
  'shell_call_output',
];

export function createResponses(store: ResponseStore): Api {
  return {
    name: 'responses',
    family: 'openai',
    idPrefix: 'resp_',
    scopes: [...TEXT_SCOPES, 'responses'],
    unauthenticated: OPENAI_UNAUTHENTICATED,
    readText: ({ json }) => inputTexts(json).join('\n'),
    plan: (request) => plan(request, store),
    renderError: renderOpenaiError,
    example: {
      request: (input) => ({ input }),
      reply: {
        id: 'resp_1',
        object: 'response',
        status: 'completed',
        output: [
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok', annotations: [] }] },
        ],
        usage: { input_tokens: 40, output_tokens: 3 },
      },
    },
  };
}

function plan(request: CallRequest, store: ResponseStore): Planned {
  const { json, directives } = request;
  if (json === null) return invalid(NOT_JSON);
  const error = modelError(json);
  if (error !== null) return { ok: false, error };
  if (typeof json.input !== 'string' && !Array.isArray(json.input))
    return invalid("Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
  if (objectsIn(json.input).some(({ encrypted_content: seal }) => typeof seal === 'string' && isBrokenSeal(seal))) {
    return invalid('The encrypted content could not be verified.', null, 'invalid_encrypted_content');
  }
  const previousId = json.previous_response_id;
  const previous = typeof previousId === 'string' ? store.find(previousId, request.caller) : null;
  if (typeof previousId === 'string' && previous === null) {
    return invalid(
      `Previous response with id '${previousId}' not found.`,
      'previous_response_id',
      'previous_response_not_found',
    );
  }
  const promptTokens = countTokens(inputTexts(json)) + (previous?.contextTokens ?? 0);
  const answer = planAnswer({
    directives,
    limit: firstWhole(json.max_output_tokens),
    thinkingTokens: directives.reasoning ?? (asksForReasoning(json) ? REASONING_TOKENS_DEFAULT : 0),
    toolCalls: chooseToolCalls({
      turns: readTurns(json),
      tools: readTools(json),
      choice: readToolChoice(json.tool_choice),
      directives,
    }),
  });
  const tally = {
    ...emptyTally(),
    promptTokens,
    cachedTokens: Math.min(directives.cached, promptTokens),
    cacheWriteTokens: directives.cacheWrite,
  };
  const script = new ResponseScript({
    request,
    json,
    store,
    answer,
    tally,
    seed: seedFrom(request.body),
    inputItems: inputItems(json, request.id),
  });
  return { ok: true, plan: scriptedCall(request, script) };
}

/** OpenAI returns reasoning when its effort is not off and its encrypted content or a summary is requested. */
function asksForReasoning(json: Json): boolean {
  if (!isObject(json.reasoning) || json.reasoning.effort === 'none') return false;
  const included = Array.isArray(json.include) && json.include.includes('reasoning.encrypted_content');
  return included || typeof json.reasoning.summary === 'string';
}

function inputTexts(json: Json | null): string[] {
  if (json === null) return [];
  const instructions = typeof json.instructions === 'string' ? [json.instructions] : [];
  if (typeof json.input === 'string') return [...instructions, json.input];
  return [...instructions, ...objectsIn(json.input).flatMap(itemTexts)];
}

function itemTexts(item: Json): string[] {
  return [...contentTexts(item.content), ...contentTexts(item.output)];
}

function readTurns(json: Json): Turn[] {
  if (typeof json.input === 'string') return [{ role: 'user', text: json.input }];
  return objectsIn(json.input).map((item) => ({
    role: TOOL_RESULTS.includes(item.type) ? 'tool_result' : item.role === 'user' ? 'user' : 'other',
    text: itemTexts(item).join('\n'),
  }));
}

function readTools(json: Json): ToolDefinition[] {
  return objectsIn(json.tools).flatMap(({ type, name, parameters }) => {
    if (typeof name !== 'string' || (type !== 'function' && type !== 'custom')) return [];
    return [{ name, kind: type, schema: parameters }];
  });
}

function readToolChoice(choice: unknown): ToolChoice {
  if (choice === 'none' || choice === 'required') return choice;
  return isObject(choice) && typeof choice.name === 'string' ? { name: choice.name } : 'auto';
}

/** The input items as `GET /v1/responses/{id}/input_items` lists them. */
function inputItems(json: Json, id: string): Json[] {
  const items = typeof json.input === 'string' ? [{ role: 'user', content: json.input }] : objectsIn(json.input);
  return items.map((item: Json, index) => {
    const numbered = { id: `item_${id.slice('resp_'.length)}_${index}`, ...item };
    if (item.role === undefined) return { status: 'completed', ...numbered };
    const kind = item.role === 'assistant' ? 'output_text' : 'input_text';
    const content =
      typeof item.content === 'string'
        ? [{ type: kind, text: item.content, ...(kind === 'output_text' ? { annotations: [], logprobs: [] } : {}) }]
        : item.content;
    return { type: 'message', status: 'completed', ...numbered, content };
  });
}
