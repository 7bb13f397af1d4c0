// Rewrites documents as the providers that imitate an API write them: usage objects as recorded or documented, and the
// members beside them.

import type { RewriteDocument } from '../document-rewrite.ts';
import { isObject, type Json, objectsIn } from '../json-fields.ts';

interface Counts {
  readonly prompt: number;
  readonly cached: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly total: number;
}

function countsOf(usage: Json): Counts {
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const details = (value: unknown): Json => (isObject(value) ? value : {});
  const input = details(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const output = details(usage.completion_tokens_details ?? usage.output_tokens_details);
  return {
    prompt: number(usage.prompt_tokens ?? usage.input_tokens),
    cached: number(input.cached_tokens),
    completion: number(usage.completion_tokens ?? usage.output_tokens),
    reasoning: number(output.reasoning_tokens),
    total: number(usage.total_tokens),
  };
}

/**
 * The cost that doubles report: half a dollar for a million prompt tokens, two dollars for a million completion tokens.
 * In billionths of a dollar.
 */
export function nanoUsdOf({ prompt, completion }: Pick<Counts, 'prompt' | 'completion'>): number {
  return prompt * 500 + completion * 2_000;
}

/** Replaces the usage, and leaves out `usage: null`. */
function usageAs(write: (counts: Counts) => Json): RewriteDocument {
  return (document) => {
    const { usage, ...rest } = document;
    return isObject(usage) ? { ...rest, usage: write(countsOf(usage)) } : rest;
  };
}

function both(first: RewriteDocument, second: RewriteDocument): RewriteDocument {
  return (document) => second(first(document));
}

/** A reply of the Responses API; in a stream it is part of an event. */
function inResponse(rewrites: RewriteDocument): RewriteDocument {
  return (document) =>
    isObject(document.response) ? { ...document, response: rewrites(document.response) } : rewrites(document);
}

function eachChoice(more: Json): RewriteDocument {
  return (document) => ({
    ...document,
    choices: objectsIn(document.choices).map((choice) => ({ ...choice, ...more })),
  });
}

const three = ({ prompt, completion, total }: Counts): Json => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: total,
});
const cachedDetails = ({ cached }: Counts): Json => ({ prompt_tokens_details: { cached_tokens: cached } });

export const plainUsage = usageAs(three);

const FILTERED = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } };
export const azureChat: RewriteDocument = both(eachChoice({ content_filter_results: FILTERED }), (document) => ({
  ...document,
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: FILTERED }],
}));

/** Only the total includes thoughts. */
export const geminiChat = usageAs(({ prompt, completion, reasoning, total }) => ({
  completion_tokens: completion - reasoning,
  prompt_tokens: prompt,
  total_tokens: total,
}));
export const vertexChat = both(geminiChat, (document) =>
  isObject(document.usage)
    ? { ...document, usage: { ...document.usage, extra_properties: { google: { traffic_type: 'ON_DEMAND' } } } }
    : document,
);

export const openrouterChat = both(
  eachChoice({ native_finish_reason: null }),
  both(
    (document) => ({ ...document, provider: 'Simulated' }),
    usageAs((counts) => ({
      ...three(counts),
      cost: nanoUsdOf(counts) / 1e9,
      is_byok: false,
      prompt_tokens_details: {
        cached_tokens: counts.cached,
        cache_write_tokens: 0,
        audio_tokens: 0,
        video_tokens: 0,
      },
      cost_details: {
        upstream_inference_cost: nanoUsdOf(counts) / 1e9,
        upstream_inference_prompt_cost: nanoUsdOf({ ...counts, completion: 0 }) / 1e9,
        upstream_inference_completions_cost: nanoUsdOf({ ...counts, prompt: 0 }) / 1e9,
      },
      completion_tokens_details: { reasoning_tokens: counts.reasoning, image_tokens: 0, audio_tokens: 0 },
    })),
  ),
);

/** The usage stands before the choices. */
export const mistralChat: RewriteDocument = (document) => {
  const { usage, choices, system_fingerprint: _, service_tier: __, ...rest } = document;
  if (!isObject(usage)) return { ...rest, choices };
  const counts = countsOf(usage);
  const { prompt_tokens, total_tokens, completion_tokens } = three(counts);
  const written = {
    prompt_tokens,
    total_tokens,
    completion_tokens,
    ...cachedDetails(counts),
    service_tier: 'standard',
  };
  return { ...rest, usage: written, choices };
};

export const mistralEmbeddings: RewriteDocument = (document) => ({ id: 'embd-sim', ...document });

const groqUsage = (counts: Counts): Json => ({
  queue_time: 0.041876985,
  prompt_tokens: counts.prompt,
  prompt_time: 0.001954727,
  completion_tokens: counts.completion,
  completion_time: 2.245177008,
  total_tokens: counts.total,
  total_time: 2.247131735,
  ...cachedDetails(counts),
  completion_tokens_details: { reasoning_tokens: counts.reasoning },
});
/** In streams the usage is in an object of its own. */
export const groqChat: RewriteDocument = (document) => {
  const { usage, object, service_tier: _, ...rest } = document;
  const written = isObject(usage) ? { usage: groqUsage(countsOf(usage)) } : {};
  return object === 'chat.completion'
    ? { ...rest, object, ...written, x_groq: { id: 'req_sim' }, service_tier: 'on_demand' }
    : { ...rest, object, x_groq: { id: 'req_sim', ...written } };
};

/** Reasoning stands beside the completion. A tick is a ten-billionth of a dollar. */
export const xaiChat = usageAs((counts) => ({
  prompt_tokens: counts.prompt,
  completion_tokens: counts.completion - counts.reasoning,
  total_tokens: counts.total,
  prompt_tokens_details: {
    text_tokens: counts.prompt,
    audio_tokens: 0,
    image_tokens: 0,
    cached_tokens: counts.cached,
  },
  completion_tokens_details: {
    reasoning_tokens: counts.reasoning,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
  num_sources_used: 0,
  cost_in_usd_ticks: nanoUsdOf(counts) * 10,
}));
const NO_TOOLS = {
  web_search_calls: 0,
  x_search_calls: 0,
  code_interpreter_calls: 0,
  file_search_calls: 0,
  mcp_calls: 0,
  document_search_calls: 0,
};
const xaiResponse = usageAs((counts) => ({
  input_tokens: counts.prompt,
  input_tokens_details: { cached_tokens: counts.cached },
  output_tokens: counts.completion,
  output_tokens_details: { reasoning_tokens: counts.reasoning },
  total_tokens: counts.total,
  num_sources_used: 0,
  num_server_side_tools_used: 0,
  cost_in_usd_ticks: nanoUsdOf(counts) * 10,
  server_side_tool_usage_details: NO_TOOLS,
  context_details: { input_tokens: counts.prompt, output_tokens: counts.completion },
}));
export const xaiResponses = inResponse(xaiResponse);
export const xaiImages: RewriteDocument = (document) => ({ ...document, usage: { cost_in_usd_ticks: 200_000_000 } });

export const deepseekChat = usageAs((counts) => ({
  ...three(counts),
  ...cachedDetails(counts),
  completion_tokens_details: { reasoning_tokens: counts.reasoning },
  prompt_cache_hit_tokens: counts.cached,
  prompt_cache_miss_tokens: counts.prompt - counts.cached,
}));
export const cachedUsage = usageAs((counts) => ({ ...three(counts), ...cachedDetails(counts) }));
export const cerebrasChat = both(cachedUsage, (document) => ({
  ...document,
  time_info: { queue_time: 0.0001, prompt_time: 0.002, completion_time: 0.03, total_time: 0.04 },
}));
export const lmstudioChat = both(plainUsage, (document) => ({ ...document, stats: {} }));
export const llamacppChat = both(plainUsage, (document) => ({
  ...document,
  timings: { prompt_n: 1, prompt_ms: 3.5, predicted_n: 1, predicted_ms: 9.2 },
}));

const CITATIONS = ['https://example.com/a'];
/** Every chunk has a report; the last one counts. */
export const perplexityChat: RewriteDocument = (document) => {
  const { usage, ...rest } = document;
  const counts = isObject(usage) ? countsOf(usage) : null;
  const found = { citations: CITATIONS, search_results: [] };
  if (counts === null) return { ...rest, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }, ...found };
  const cost = {
    input_tokens_cost: (counts.prompt * 500) / 1e9,
    output_tokens_cost: (counts.completion * 2_000) / 1e9,
    request_cost: 0,
    total_cost: nanoUsdOf(counts) / 1e9,
  };
  return { ...rest, usage: { ...three(counts), search_context_size: 'low', cost }, ...found };
};

const perplexityResponse = usageAs((counts) => ({
  input_tokens: counts.prompt,
  input_tokens_details: { cache_creation_input_tokens: 0, cache_read_input_tokens: counts.cached },
  output_tokens: counts.completion,
  total_tokens: counts.total,
  cost: {
    currency: 'USD',
    input_cost: (counts.prompt * 500) / 1e9,
    output_cost: (counts.completion * 2_000) / 1e9,
    total_cost: nanoUsdOf(counts) / 1e9,
  },
}));
export const perplexityResponses = inResponse(perplexityResponse);

/** Anthropic's usage as clouds and other vendors report it: without the region that served it. */
function withoutPlace(usage: unknown): unknown {
  if (!isObject(usage)) return usage;
  const { inference_geo: _, ...rest } = usage;
  return rest;
}
export const placelessMessages: RewriteDocument = (document) => {
  const { usage, message } = document;
  if (isObject(message)) return { ...document, message: { ...message, usage: withoutPlace(message.usage) } };
  return usage === undefined ? document : { ...document, usage: withoutPlace(usage) };
};
