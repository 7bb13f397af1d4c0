// Renders the response object of the Responses API in each of its states, echoing the request's fields as OpenAI does.

import { isObject, type Json } from '../json-fields.ts';
import type { PlannedAnswer } from '../planned-answer.ts';
import { wrongCounts } from '../wrong-counts.ts';
import type { CallRequest, CallTally } from './api.ts';

const CREATED = 1_700_000_000; // Fixed: a reply depends on its request alone, but for its id.

export type ResponseState = 'queued' | 'in_progress' | 'cancelled' | 'final';

export interface ResponseFacts {
  readonly request: CallRequest;
  readonly json: Json;
  readonly answer: PlannedAnswer;
  readonly tally: CallTally;
  readonly state: ResponseState;
  readonly output: readonly Json[];
}

export function renderResponse(facts: ResponseFacts): Json {
  const { request, json, answer, state, output } = facts;
  const final = state === 'final';
  const incomplete = final && answer.finish === 'length';
  const reasoning = isObject(json.reasoning) ? json.reasoning : {};
  return {
    id: request.id,
    object: 'response',
    created_at: CREATED,
    status: final ? (incomplete ? 'incomplete' : 'completed') : state,
    background: json.background === true,
    completed_at: final && !incomplete ? CREATED + 1 : null,
    error: null,
    frequency_penalty: 0,
    incomplete_details: incomplete ? { reason: 'max_output_tokens' } : null,
    instructions: json.instructions ?? null,
    max_output_tokens: json.max_output_tokens ?? null,
    max_tool_calls: json.max_tool_calls ?? null,
    model: json.model,
    output,
    parallel_tool_calls: json.parallel_tool_calls ?? true,
    presence_penalty: 0,
    previous_response_id: json.previous_response_id ?? null,
    prompt_cache_key: json.prompt_cache_key ?? null,
    prompt_cache_retention: null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    safety_identifier: json.safety_identifier ?? null,
    service_tier: final ? 'default' : (json.service_tier ?? 'auto'),
    store: json.store !== false,
    temperature: json.temperature ?? 1,
    text: { format: { type: 'text' }, verbosity: 'medium', ...(isObject(json.text) ? json.text : {}) },
    tool_choice: json.tool_choice ?? 'auto',
    tools: json.tools ?? [],
    top_logprobs: json.top_logprobs ?? 0,
    top_p: json.top_p ?? 1,
    truncation: json.truncation ?? 'disabled',
    usage: final ? renderUsage(facts) : null,
    user: json.user ?? null,
    metadata: json.metadata ?? {},
  };
}

function renderUsage({ request, answer, tally }: ResponseFacts): Json | null {
  const { usage } = request.directives;
  if (usage === 'none') return null;
  const { promptTokens, cachedTokens, cacheWriteTokens } = tally;
  const thinking = answer.parts.reduce((sum, part) => sum + (part.kind === 'thinking' ? part.tokens : 0), 0);
  const honest = {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: answer.tokens,
    output_tokens_details: { reasoning_tokens: thinking },
    total_tokens: promptTokens + answer.tokens,
  };
  return usage === null
    ? honest
    : { ...honest, ...wrongCounts(usage, { counts: ['input_tokens', 'output_tokens'], total: 'total_tokens' }) };
}
