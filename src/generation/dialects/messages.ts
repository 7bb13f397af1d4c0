// The Messages dialect: its control fields, its usage in two places of a stream, the events that end one (spec 4.1).

import { JSON_SCHEMA_TEXTS, type TextPlaces } from '../../domain/guardrails/text-places.ts';
import { APIS } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { readCount, readFlag, readToolPrompt } from '../request/request-fields.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { oneOf, ROUTER_FIELDS, SEARCH, type UnpricedRequests, withNamedCosts } from '../request/unpriced-fields.ts';
import { EventStreamEnd } from '../sse/stream-end.ts';
import { TerminalEvents } from '../sse/terminal-events.ts';
import { documentUsage, firstEventWithUsage, isDocument, lastEventUsage } from '../sse/usage-window.ts';
import type { BetaCeilings, Dialect, KeptReply, RequestBounds } from './dialect.ts';
import { messagesDescription } from './messages-description.ts';
import { endedAtLimit, type LimitMark } from './usage/output-limit.ts';
import { withDetails } from './usage/reply-details.ts';
import { countOf, objectOf, type UsageObject } from './usage/reported-counts.ts';

const FAILING_EVENTS: readonly string[] = ['error'];
const TERMINAL_EVENTS = new TerminalEvents(['message_stop', ...FAILING_EVENTS]);

/** The limit is reported in `stop_reason`; in a stream, that of `message_delta`'s delta. */
const LIMIT_MARK: LimitMark = {
  key: Buffer.from('"stop_reason"'),
  value: Buffer.from('"max_tokens"'),
  probe: Buffer.from('x_token'),
  probeAt: 3,
  parent: null,
  documentDepth: 1,
  eventDepth: 2,
};

const MESSAGES_UNPRICED: UnpricedRequests = {
  fields: {
    ...ROUTER_FIELDS,
    // With `auto` a reply may come from capacity that the operator has bought in advance. The reply then says so and is
    // charged as held.
    service_tier: {
      isFree: oneOf('auto', 'standard_only', 'standard', 'default'),
      reason: 'This service tier has no price in the catalog.',
      advice: 'Leave "service_tier" out, or send "standard_only".',
      pricedAs: 'serviceTiers',
    },
    inference_geo: {
      isFree: oneOf('global'),
      reason: 'Inference in this region has no price in the catalog.',
      advice: 'Leave "inference_geo" out, or send "global".',
      pricedAs: 'geos',
    },
    mcp_servers: { ...SEARCH, reason: 'Tools that the provider runs have no price in the catalog.' },
    container: { ...SEARCH, reason: 'Containers of the provider have no price in the catalog.' },
    // Clearing costs nothing. A compaction is another call of the model, which the totals of the reply leave out.
    context_management: {
      isFree: (value) => editTypes(value).every((type) => type.startsWith('clear_')),
      reason: "This edit of the context is a call of the model that the reply's totals leave out.",
      advice: 'Use only edits whose type begins with "clear_".',
    },
  },
  freeToolTypes: [],
  freeToolPrefixes: ['bash_', 'text_editor_', 'computer_', 'memory_', 'tool_search_tool_'],
  searchToolType: null,
  hasMaxToolCalls: false,
  reportedTools: ['web_search', 'web_fetch'],
  reportsHourCache: true,
};

const BLOCK = {
  type: 'opaque',
  id: 'opaque',
  tool_use_id: 'opaque',
  file_id: 'opaque',
  // The provider refuses a change of anything signed, or of what belongs to it.
  thinking: 'fragile',
  signature: 'opaque',
  encrypted_content: 'opaque',
  encrypted_index: 'opaque',
  citations: 'fragile',
  name: 'fragile',
  url: 'fragile',
  content: { shape: 'block' },
  source: { shape: 'source' },
  caller: 'fragile',
  cache_control: 'fragile',
} as const;

const MESSAGES_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'event',
  shapes: {
    ...JSON_SCHEMA_TEXTS,
    request: {
      members: {
        model: 'opaque',
        system: { shape: 'block' },
        messages: { shape: 'message' },
        tools: { shape: 'tool' },
        tool_choice: { shape: 'tool' },
        mcp_servers: { shape: 'server' },
        container: 'opaque',
        thinking: 'fragile',
      },
    },
    message: { members: { role: 'opaque', content: { shape: 'block' } } },
    block: { members: BLOCK, byType: { thinking: 'thinking', redacted_thinking: 'thinking' } },
    thinking: {
      members: { type: 'opaque', signature: 'opaque', data: 'opaque' },
      otherwise: 'fragile',
      names: 'fragile',
    },
    source: {
      members: { type: 'opaque', media_type: 'opaque', file_id: 'opaque', url: 'url', content: { shape: 'block' } },
      byType: { base64: 'base64' },
    },
    base64: { members: { type: 'opaque', media_type: 'fragile', data: 'base64' } },
    tool: {
      members: { type: 'opaque', name: 'fragile', input_schema: { shape: 'schema' }, cache_control: 'opaque' },
    },
    server: { members: { type: 'opaque', url: 'fragile', name: 'fragile', authorization_token: 'opaque' } },
    reply: {
      members: {
        id: 'opaque',
        type: 'opaque',
        role: 'opaque',
        model: 'opaque',
        content: { shape: 'block' },
        stop_reason: 'opaque',
        usage: 'opaque',
        container: 'opaque',
        context_management: 'opaque',
      },
    },
    event: {
      members: { type: 'opaque', message: { shape: 'reply' }, usage: 'opaque' },
      byType: {
        content_block_start: 'block_start',
        content_block_delta: 'block_delta',
        content_block_stop: 'block_stop',
        message_delta: 'over',
        message_stop: 'over',
        error: 'over',
      },
    },
    block_start: { members: { type: 'opaque', index: { index: 0 }, content_block: { shape: 'first_piece' } } },
    first_piece: {
      members: {
        ...BLOCK,
        text: { lane: 'text', as: 'text' },
        thinking: { lane: 'thinking', as: 'fragile' },
        data: 'opaque',
      },
    },
    block_delta: { members: { type: 'opaque', index: { index: 0 }, delta: { shape: 'piece' } } },
    piece: {
      members: {
        type: 'opaque',
        text: { lane: 'text', as: 'text' },
        content: { lane: 'content', as: 'text' },
        thinking: { lane: 'thinking', as: 'fragile' },
        partial_json: { lane: 'input', as: 'arguments' },
        signature: 'opaque',
        citation: 'fragile',
      },
      // In an unknown delta these are texts that grow, as in all deltas.
      otherwise: { lane: 'other', as: 'text' },
    },
    over: { members: { type: 'opaque', usage: 'opaque', context_management: 'opaque' }, ends: true },
    block_stop: { members: { type: 'opaque', index: { index: 0 } }, ends: true },
  },
};

export const messages: Dialect = {
  api: 'messages',
  path: APIS.messages.path,
  envelope: 'messages',
  description: messagesDescription,
  outputLimitField: 'max_tokens',
  texts: MESSAGES_TEXTS,
  storedObjects: { fields: ['container'], addInput: false },
  inputField: 'messages',
  charged: true,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds,
  readUsage,
  readHeaders,
  isTruncated: (reply) => endedAtLimit(reply, LIMIT_MARK),
  watchStreamEnd: () => new EventStreamEnd(TERMINAL_EVENTS),
  failingEvents: FAILING_EVENTS,
  failedEvent: (refusal) => `event: error\ndata: ${refusal}\n\n`,
};

/**
 * The dialect requires `max_tokens`. A request without it is left to the provider to refuse, if the catalog's cap
 * bounds its cost.
 */
function readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal {
  const streamed = readFlag(scanned, 'stream');
  if (typeof streamed === 'object') return streamed;
  const outputTokensMax = readCount(scanned, body, 'max_tokens');
  if (typeof outputTokensMax === 'object' && outputTokensMax !== null) return outputTokensMax;
  return withNamedCosts(
    { streamed, outputTokensMax, answers: 1, ...readToolPrompt(scanned) },
    MESSAGES_UNPRICED,
    scanned,
    body,
  );
}

/** Betas that let a model read or write more come in a header. */
function readHeaders(bounds: RequestBounds, headerValues: (name: string) => readonly string[]): RequestBounds {
  const betaCeilings = readBetaCeilings(headerValues('anthropic-beta'));
  return betaCeilings === null ? bounds : { ...bounds, betaCeilings };
}

function readUsage(reply: KeptReply): Usage | null {
  if (isDocument(reply.beginning)) {
    const usage = documentUsage(reply);
    return usage === null ? null : usageOfCounts(usage, usage, reply);
  }
  return readStreamUsage(reply);
}

/**
 * `message_start` has the input and a first count of the output. `message_delta` has the final counts: all of them if
 * the input grew on the way (server tools) or shrank (compaction), else only the output. Without `message_delta` the
 * output is not known, whatever `message_start` says, unless the message was complete when it began, as when a tool's
 * result only continues a running program.
 */
function readStreamUsage(reply: KeptReply): Usage | null {
  const first = firstEventWithUsage(reply);
  const start = first?.type === 'message_start' ? first.usageAt(2) : null;
  const delta = lastEventUsage(reply, (event) => event.usageAt(1));
  if (start === null || delta !== null)
    return delta === null ? null : usageOfCounts({ ...start, ...finalCounts(start, delta) }, delta, reply);
  const isOver = !reply.cut && typeof objectOf(first?.json()?.['message'])['stop_reason'] === 'string';
  return usageOfCounts(start, isOver ? start : {}, reply);
}

/** The counts of `message_delta` that replace those of `message_start`. */
function finalCounts(start: UsageObject | null, delta: UsageObject | null): UsageObject {
  const counts = Object.entries(delta ?? {}).flatMap(([name, count]): [string, unknown][] => {
    const before = objectOf(start)[name];
    if (saysNothing(count, before)) return [];
    return [[name, isGroup(count) && isGroup(before) ? withLater(before, count) : count]];
  });
  return Object.fromEntries(counts);
}

/**
 * Whether a later value is to be ignored: a null, or a zero or empty list where the start has a count, since some
 * providers fill those in.
 */
function saysNothing(count: unknown, before: unknown): boolean {
  const isNone = count === 0 || (Array.isArray(count) && count.length === 0);
  return count === null || (isNone && before !== undefined);
}

/** Whether a value is an object of counts, such as those of tools. A list, such as that of iterations, is one value. */
function isGroup(value: unknown): value is UsageObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function withLater(before: UsageObject, later: UsageObject): UsageObject {
  const counts = Object.entries(later).filter(([name, count]) => !saysNothing(count, before[name]));
  return { ...before, ...Object.fromEntries(counts) };
}

/** Anthropic reports cache reads and writes beside the input; our input includes both. */
function usageOfCounts(counts: UsageObject, final: UsageObject, reply: KeptReply): Usage {
  const plain = countOf(counts['input_tokens']);
  const cached = countOf(counts['cache_read_input_tokens']);
  const { cacheWrite, hourCacheWrite } = cacheWritesIn(counts, reply.asksForHourCache === true);
  const usage: Usage = {
    inputTokens: plain === null ? null : sumOf(plain, cached, cacheWrite),
    cachedInputTokens: cached,
    cacheWriteTokens: cacheWrite,
    outputTokens: countOf(final['output_tokens']),
    reasoningTokens: countOf(objectOf(final['output_tokens_details'])['thinking_tokens']),
    images: null,
    hourCacheWriteTokens: hourCacheWrite,
  };
  return withDetails(usage, counts, reply);
}

/** The sum of the parts that are reported; NaN if one of them is no count. */
function sumOf(...parts: readonly (number | null)[]): number {
  return parts.reduce<number>((sum, part) => (part !== null && part < 0 ? Number.NaN : sum + (part ?? 0)), 0);
}

interface CacheWrites {
  readonly cacheWrite: number | null;
  readonly hourCacheWrite: number | null;
}

/** All cache writes, and those for an hour. If a reply does not tell them apart, the request decides. */
function cacheWritesIn(counts: UsageObject, asksForHourCache: boolean): CacheWrites {
  const all = countOf(counts['cache_creation_input_tokens']);
  const writes = objectOf(counts['cache_creation']);
  const short = countOf(writes['ephemeral_5m_input_tokens']);
  const long = countOf(writes['ephemeral_1h_input_tokens']);
  const told = short === null && long === null ? null : sumOf(short, long);
  const cacheWrite = all === null || all === 0 ? (told ?? all) : all;
  if (!asksForHourCache || cacheWrite === null) return { cacheWrite, hourCacheWrite: long };
  return { cacheWrite, hourCacheWrite: Math.max(0, cacheWrite - (short ?? 0)) };
}

function editTypes(value: unknown): string[] {
  const edits: unknown = typeof value === 'object' && value !== null && 'edits' in value ? value.edits : [];
  if (edits === null) return [];
  return Array.isArray(edits)
    ? edits.map((edit: unknown) => String((edit as { readonly type?: unknown } | null)?.type))
    : ['unknown'];
}

/**
 * Reads `context-1m-2025-08-07`, `output-128k-2025-02-19`, `output-300k-2026-03-24`: the largest of each kind; null, as
 * nearly always: none is named.
 */
export function readBetaCeilings(headers: readonly string[]): BetaCeilings | null {
  let context = 0;
  let output = 0;
  for (const header of headers) {
    for (const part of header.toLowerCase().split(',')) {
      const beta = part.trim();
      if (beta.startsWith('context-')) context = Math.max(context, readSize(beta.slice('context-'.length)));
      else if (beta.startsWith('output-')) output = Math.max(output, readSize(beta.slice('output-'.length)));
    }
  }
  return context === 0 && output === 0 ? null : { context, output };
}

const UNITS: Readonly<Record<string, number>> = { k: 1_000, m: 1_000_000 };

/** `1m-...` is a million; 0 for text that is no size, as in `context-management-2025-06-27`. */
function readSize(text: string): number {
  const [size = ''] = text.split('-', 1);
  const count = Number(size.slice(0, -1));
  return Number.isSafeInteger(count) ? count * (UNITS[size.slice(-1)] ?? 0) : 0;
}
