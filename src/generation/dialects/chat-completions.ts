// The Chat Completions dialect: its control fields, its usage object, the end of its stream (spec 4.1).

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { readCount, readFlag } from '../request/request-fields.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { OPENAI_FIELDS, type UnpricedRequests, withNamedCosts } from '../request/unpriced-fields.ts';
import { ChatStreamEnd } from '../sse/chat-stream-end.ts';
import { documentUsage, type EventLine, isDocument, lastEventUsage } from '../sse/usage-window.ts';
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
  reportedTools: ['web_search'],
  reportsHourCache: false,
};

export const chatCompletions: Dialect = {
  api: 'chat_completions',
  upstreamPath: '/v1/chat/completions',
  outputLimitField: 'max_tokens',
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
  // Where a client sets both, the provider may honour either: the bound is the larger one.
  const outputTokensMax = maxTokens === null ? maxCompletionTokens : Math.max(maxTokens, maxCompletionTokens ?? 0);
  return withNamedCosts(
    { streamed, outputTokensMax, answers: Math.max(1, answers ?? 1) },
    CHAT_UNPRICED,
    scanned,
    body,
  );
}

function readUsage(reply: KeptReply): Usage | null {
  const usage = isDocument(reply.beginning) ? documentUsage(reply) : lastEventUsage(reply, usageOfEvent);
  if (usage === null) return null;
  const input = objectOf(usage['prompt_tokens_details']);
  const output = objectOf(usage['completion_tokens_details']);
  const counts = inclusiveUsage({
    input: countOf(usage['prompt_tokens']),
    // Beside OpenAI's own name: DeepSeek's, Moonshot's, and that of gateways which pass Anthropic's on.
    cached: countOf(
      input['cached_tokens'] ??
        usage['prompt_cache_hit_tokens'] ??
        usage['cached_tokens'] ??
        usage['cache_read_input_tokens'],
    ),
    // OpenRouter's, Alibaba's, and again Anthropic's.
    cacheWrite: countOf(
      input['cache_write_tokens'] ?? input['cache_creation_input_tokens'] ?? usage['cache_creation_input_tokens'],
    ),
    output: countOf(usage['completion_tokens']),
    reasoning: countOf(output['reasoning_tokens']),
    total: countOf(usage['total_tokens']),
  });
  return withDetails(counts, usage, reply);
}

/** Of an event of the stream: at the top, or where Groq and Moonshot put it. */
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

/** Some providers never send `[DONE]`: what tells is the reason that every choice's last chunk gives. */
const FINISH_REASON = /"finish_reason"\s*:\s*"/;

function isWholeWithoutEnd(end: Buffer): boolean {
  return FINISH_REASON.test(end.toString('latin1'));
}
