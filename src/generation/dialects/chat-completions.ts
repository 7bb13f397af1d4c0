// The Chat Completions dialect: its control fields, its usage object, the end of its stream (spec 4.1).

import { JSON_SCHEMA_TEXTS, type TextPlaces } from '../../domain/guardrails/text-places.ts';
import { APIS } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { tellsFailure } from '../../domain/usage/told-failure.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { readCount, readFlag, readToolPrompt } from '../request/request-fields.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { OPENAI_FIELDS, type UnpricedRequests, withNamedCosts } from '../request/unpriced-fields.ts';
import { ChatStreamEnd } from '../sse/chat-stream-end.ts';
import { lastEventNaming } from '../sse/last-event.ts';
import { documentUsage, type EventLine, isDocument, lastEventUsage } from '../sse/usage-window.ts';
import { chatCompletionsDescription } from './chat-completions-description.ts';
import type { Dialect, KeptReply, RequestBounds } from './dialect.ts';
import { endedAtLimit, type LimitMark } from './usage/output-limit.ts';
import { LAST_CHUNKS_BYTES, tierDetails, withDetails } from './usage/reply-details.ts';
import { countOf, inclusiveUsage, objectOf, type UsageObject } from './usage/reported-counts.ts';

/** `choices[].finish_reason`. */
const LIMIT_MARK: LimitMark = {
  key: Buffer.from('"finish_reason"'),
  value: Buffer.from('"length"'),
  probe: Buffer.from('gth"'),
  probeAt: 4,
  parent: null,
  documentDepth: 3,
  eventDepth: 3,
};

const CHAT_UNPRICED: UnpricedRequests = {
  fields: OPENAI_FIELDS,
  freeToolTypes: [],
  freeToolPrefixes: [],
  searchToolType: null,
  hasMaxToolCalls: false,
  reportedTools: ['web_search'],
  reportsHourCache: false,
};

const CHAT_MESSAGE = {
  role: 'opaque',
  content: { shape: 'part' },
  tool_calls: { shape: 'tool_call' },
  function_call: { shape: 'called' },
  tool_call_id: 'opaque',
  audio: { shape: 'inline' },
  // Some providers sign these.
  reasoning_details: 'fragile',
  thinking_blocks: 'fragile',
  annotations: 'fragile',
  extra_content: 'opaque',
} as const;

/** Members of a whole reply and of a stream's chunk alike. */
const CHAT_REPLY = {
  id: 'opaque',
  object: 'opaque',
  model: 'opaque',
  system_fingerprint: 'opaque',
  usage: 'opaque',
  citations: 'fragile',
} as const;

const CHAT_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'event',
  shapes: {
    ...JSON_SCHEMA_TEXTS,
    request: {
      members: {
        model: 'opaque',
        // A seed can have as many digits as a card number.
        seed: 'opaque',
        messages: { shape: 'message' },
        tools: { shape: 'tool' },
        functions: { shape: 'function' },
        tool_choice: { shape: 'tool' },
        function_call: { shape: 'called' },
        response_format: { shape: 'format' },
        audio: 'fragile',
        prediction: { shape: 'message' },
      },
    },
    message: { members: CHAT_MESSAGE },
    part: {
      members: {
        type: 'opaque',
        image_url: { shape: 'media' },
        video_url: { shape: 'media' },
        audio_url: { shape: 'media' },
        input_audio: { shape: 'inline' },
        file: { shape: 'file' },
        cache_control: 'opaque',
      },
    },
    media: { members: { url: 'url', detail: 'opaque' }, string: 'url' },
    inline: { members: { id: 'opaque', data: 'base64', format: 'opaque' } },
    file: { members: { file_data: 'base64', file_id: 'opaque' } },
    tool: {
      members: { type: 'opaque', function: { shape: 'function' }, custom: { shape: 'function' } },
      string: 'fragile',
    },
    function: { members: { name: 'fragile', parameters: { shape: 'schema' } } },
    format: { members: { type: 'opaque', json_schema: { shape: 'named_schema' } } },
    tool_call: {
      members: {
        id: 'opaque',
        type: 'opaque',
        function: { shape: 'called' },
        custom: { shape: 'called' },
        extra_content: 'opaque',
      },
    },
    called: { members: { name: 'fragile', arguments: 'arguments' }, string: 'fragile' },
    reply: {
      members: {
        ...CHAT_REPLY,
        choices: { shape: 'choice' },
      },
    },
    choice: {
      members: { message: { shape: 'message' }, finish_reason: 'opaque', logprobs: 'null' },
    },
    event: {
      members: {
        ...CHAT_REPLY,
        obfuscation: 'opaque',
        choices: { shape: 'piece' },
      },
    },
    piece: {
      members: {
        index: { index: 0 },
        delta: { shape: 'delta' },
        message: { shape: 'message' },
        finish_reason: 'ends',
        logprobs: 'null',
      },
    },
    delta: {
      members: {
        ...CHAT_MESSAGE,
        content: { shape: 'delta_part' },
        refusal: { lane: 'refusal', as: 'text' },
        reasoning_content: { lane: 'reasoning_content', as: 'text' },
        reasoning: { lane: 'reasoning', as: 'text' },
        reasoning_details: { shape: 'delta_detail' },
        thinking_blocks: { shape: 'delta_thought' },
        tool_calls: { shape: 'tool_piece' },
        function_call: { shape: 'called_piece' },
        audio: { shape: 'audio_piece' },
      },
    },
    delta_part: {
      members: { type: 'opaque', text: { lane: 'content', as: 'text' }, thinking: { shape: 'delta_thought' } },
      string: { lane: 'content', as: 'text' },
    },
    delta_thought: {
      members: {
        type: 'opaque',
        signature: 'opaque',
        data: 'opaque',
        thinking: { lane: 'thinking', as: 'fragile' },
        text: { lane: 'thinking', as: 'fragile' },
      },
      otherwise: 'fragile',
      string: { lane: 'thinking', as: 'fragile' },
    },
    delta_detail: {
      members: { text: { lane: 'detail', as: 'fragile' }, summary: { lane: 'detail', as: 'fragile' }, data: 'opaque' },
      otherwise: 'opaque',
      string: 'opaque',
    },
    tool_piece: {
      members: {
        index: { index: 1 },
        id: 'opaque',
        type: 'opaque',
        function: { shape: 'called_piece' },
        custom: { shape: 'called_piece' },
        extra_content: 'opaque',
      },
    },
    called_piece: {
      members: {
        name: 'fragile',
        arguments: { lane: 'arguments', as: 'arguments' },
        input: { lane: 'input', as: 'text' },
      },
    },
    audio_piece: {
      members: { id: 'opaque', data: 'opaque', transcript: { lane: 'transcript', as: 'text' } },
    },
  },
};

export const chatCompletions: Dialect = {
  api: 'chat_completions',
  path: APIS.chat_completions.path,
  envelope: 'chat',
  description: chatCompletionsDescription,
  outputLimitField: 'max_tokens',
  texts: CHAT_TEXTS,
  inputField: 'messages',
  charged: true,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds,
  readUsage,
  readDetails: (reply) => tierDetails(reply, 1, LAST_CHUNKS_BYTES),
  isTruncated: (reply) => endedAtLimit(reply, LIMIT_MARK),
  watchStreamEnd: () => new ChatStreamEnd(),
  isWholeWithoutEnd,
  endsInFailure,
};

function readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal {
  const streamed = readFlag(scanned, 'stream');
  if (typeof streamed === 'object') return streamed;
  const maxTokens = readCount(scanned, body, 'max_tokens');
  if (typeof maxTokens === 'object' && maxTokens !== null) return maxTokens;
  const maxCompletionTokens = readCount(scanned, body, 'max_completion_tokens');
  if (typeof maxCompletionTokens === 'object' && maxCompletionTokens !== null) return maxCompletionTokens;
  const answers = readCount(scanned, body, 'n');
  if (typeof answers === 'object' && answers !== null) return answers;
  // If a client sets both, the provider may honor either, so the larger one is the bound.
  const outputTokensMax = maxTokens === null ? maxCompletionTokens : Math.max(maxTokens, maxCompletionTokens ?? 0);
  const outputLimits = limitsSet(maxTokens, maxCompletionTokens);
  return withNamedCosts(
    { streamed, outputTokensMax, ...outputLimits, answers: Math.max(1, answers ?? 1), ...readToolPrompt(scanned) },
    CHAT_UNPRICED,
    scanned,
    body,
  );
}

/** The limits by name if the newer name is used, which not every provider knows. */
function limitsSet(older: number | null, newer: number | null): Pick<RequestBounds, 'outputLimits'> {
  if (newer === null) return {};
  return { outputLimits: { max_completion_tokens: newer, ...(older === null ? {} : { max_tokens: older }) } };
}

function readUsage(reply: KeptReply): Usage | null {
  const usage = isDocument(reply.beginning) ? documentUsage(reply) : lastEventUsage(reply, usageOfEvent);
  if (usage === null) return null;
  const input = objectOf(usage['prompt_tokens_details']);
  const output = objectOf(usage['completion_tokens_details']);
  const counts = inclusiveUsage({
    input: countOf(usage['prompt_tokens']),
    // OpenAI's own name first, then those of DeepSeek, of Moonshot, and of gateways that pass on Anthropic's names.
    cached: countOf(
      input['cached_tokens'] ??
        usage['prompt_cache_hit_tokens'] ??
        usage['cached_tokens'] ??
        usage['cache_read_input_tokens'],
    ),
    // The names of OpenRouter, Alibaba and Anthropic.
    cacheWrite: countOf(
      input['cache_write_tokens'] ?? input['cache_creation_input_tokens'] ?? usage['cache_creation_input_tokens'],
    ),
    output: countOf(usage['completion_tokens']),
    reasoning: countOf(output['reasoning_tokens']),
    total: countOf(usage['total_tokens']),
  });
  return withDetails(counts, usage, reply);
}

/** The usage object of an event: at the top level, or where Groq and Moonshot put it. */
function usageOfEvent(event: EventLine): UsageObject | null {
  const usage = event.usageAt(1);
  if (usage !== null) return hasCounts(usage) ? usage : null;
  const data = event.hasUsage ? event.json() : null;
  if (data === null) return null;
  const choices = data['choices'];
  const inside = [objectOf(data['x_groq'])['usage'], objectOf(Array.isArray(choices) ? choices[0] : null)['usage']];
  return inside.map(objectOf).find(hasCounts) ?? null;
}

function hasCounts(usage: UsageObject): boolean {
  return 'prompt_tokens' in usage || 'completion_tokens' in usage;
}

/**
 * Some providers never send `[DONE]`. Then the finish reason in every choice's last chunk shows the end. In earlier
 * chunks some providers write an empty reason, or the word null.
 */
const FINISH_REASON = /"finish_reason"\s*:\s*"(?!"|null")/;

function isWholeWithoutEnd(end: Buffer): boolean {
  return FINISH_REASON.test(end.toString('latin1'));
}

const ERROR_KEY = Buffer.from('"error"');

/** Matches `data: {"error":...}`, which some providers send beside choices. */
function endsInFailure(end: Buffer): boolean {
  const event = lastEventNaming(ERROR_KEY, end);
  return event !== null && tellsFailure(event);
}
