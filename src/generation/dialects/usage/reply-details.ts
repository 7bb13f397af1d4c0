// What a reply says, beside its counts, that its cost depends on: a service tier, a speed, a region, tools that the
// provider ran. What of it the price does not have is charged as held, and the record says why
// (domain/settlement/settle.ts). Read without parsing the reply: only what is not plain is looked at twice.

import { Buffer } from 'node:buffer';
import { PLAIN, type VariationKind } from '../../../domain/models/price.ts';
import { type PicoUsd, picoUsd } from '../../../domain/money/pico-usd.ts';
import { readUnits, readUsdNumber } from '../../../domain/money/read-number.ts';
import { parseObject } from '../../../domain/usage/countable-text.ts';
import type { ToolCalls, Usage, UsageDetails } from '../../../domain/usage/usage.ts';
import { keyBefore, skipSpace, valueAfterKey } from '../../../platform/bytes/json-bytes.ts';
import { DepthFromEnd, DepthFromStart } from '../../../platform/bytes/json-depth.ts';
import { matchesAt } from '../../../platform/bytes/matches-at.ts';
import { DATA_LINE, LINE_FEED } from '../../sse/syntax.ts';
import { isDocument, OBJECT_BYTES_MAX, objectEnd, objectStart } from '../../sse/usage-window.ts';
import type { KeptReply } from '../dialect.ts';
import { objectOf, type UsageObject } from './reported-counts.ts';

const QUOTE = 0x22;
const VALUE_BYTES_MAX = 40;

/**
 * A key, and a part of it that is looked for: begun at a letter that texts seldom have, and short (output-limit.ts says
 * why).
 */
interface SoughtKey {
  readonly key: Buffer;
  readonly probe: Buffer;
  readonly probeAt: number;
}

const TIER_KEY: SoughtKey = { key: Buffer.from('"service_tier"'), probe: Buffer.from('_tier"'), probeAt: 8 };
const TOOL_USAGE_KEY: SoughtKey = { key: Buffer.from('"tool_usage"'), probe: Buffer.from('_usage"'), probeAt: 5 };
const SEARCH_CALL = Buffer.from('"web_search_call"');
const TYPE_KEY = Buffer.from('"type"');
const OPEN_BRACE = 0x7b;

/** Chunks of a Chat Completions stream repeat the tier: the last ones are enough. */
export const LAST_CHUNKS_BYTES = 8_192;

/**
 * The service tier that a reply names last; null: none, or the plain one (`isTold`). `eventDepth`: of the key in the
 * data of an event; in a document it is 1.
 */
export function servedTier(reply: KeptReply, eventDepth: number, bytesMax = Number.MAX_SAFE_INTEGER): string | null {
  const place = new ReplyPlace(reply, eventDepth, bytesMax);
  const keys: number[] = [];
  for (let key = place.find(TIER_KEY, 0); key !== -1; key = place.find(TIER_KEY, key + 1)) {
    if (isTold(reply, 'serviceTiers', tierAt(place.bytes, key))) keys.push(key);
  }
  const own = place.thoseAtTop(keys).at(-1);
  return own === undefined ? null : tierAt(place.bytes, own);
}

/** The tier as details; null: there are none. */
export function tierDetails(
  reply: KeptReply,
  eventDepth: number,
  bytesMax = Number.MAX_SAFE_INTEGER,
): UsageDetails | null {
  const serviceTier = servedTier(reply, eventDepth, bytesMax);
  return serviceTier === null ? null : { serviceTier };
}

/**
 * Plain names are told apart from silence only where the request or the price has named another; `auto` says nothing.
 */
function isTold({ tellsPlain }: KeptReply, kind: VariationKind, name: unknown): name is string {
  return typeof name === 'string' && (tellsPlain === true ? name !== 'auto' : !PLAIN[kind].includes(name));
}

function tierAt(bytes: Buffer, key: number): string | null {
  return textAfter(bytes, key + TIER_KEY.key.length);
}

/**
 * Tools that the provider of a Responses reply ran: what it reports of them is the answer, zeros too. `maySearch`: the
 * request let it search, which not every provider reports as usage, so that an item of a search, which may have failed
 * or opened a page, counts where nothing is reported.
 */
export function servedTools(
  reply: KeptReply,
  maySearch: boolean,
  readUsage: () => UsageObject | null,
): readonly ToolCalls[] {
  const place = new ReplyPlace(reply, 2, Number.MAX_SAFE_INTEGER);
  const keys: number[] = [];
  const used: number[] = [];
  for (let key = place.find(TOOL_USAGE_KEY, 0), from = 0; key !== -1; key = place.find(TOOL_USAGE_KEY, from)) {
    const { start, end } = toolUsageAt(place.bytes, key);
    // What lies within it is not the reply's own, and an object without an end is at least that long.
    from = start === -1 ? key + 1 : end === -1 ? start + OBJECT_BYTES_MAX : end;
    if (end === -1) continue;
    keys.push(key);
    if (hasDigitAboveZero(place.bytes, start, end)) used.push(key);
  }
  for (const key of place.thoseAtTop(used).slice(0, OWN_REPORTS_MAX)) {
    const calls = usedCalls('tool_usage', parseToolUsage(place.bytes, key));
    if (calls.length > 0) return calls;
  }
  if (!maySearch || !(hasSearchItem(reply.end) || hasSearchItem(reply.beginning))) return NO_CALLS;
  const last = place.thoseAtTop(keys).at(-1);
  // Events before the last one may say zero because nothing was searched yet.
  const report = last !== undefined && place.isInLastEvent(last) ? parseToolUsage(place.bytes, last) : null;
  const isTold = typeof objectOf(objectOf(report)['web_search'])['num_requests'] === 'number';
  return isTold || tellsSearches(readUsage())
    ? NO_CALLS
    : [{ tool: 'web_search', count: null, reportedAs: 'tool_usage web_search' }];
}

/** Whether these bytes have an item of a search; functions of the client may have the same name. */
function hasSearchItem(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(SEARCH_CALL); at !== -1; at = bytes.indexOf(SEARCH_CALL, at + SEARCH_CALL.length)) {
    if (keyBefore(bytes, at, TYPE_KEY) !== -1) return true;
  }
  return false;
}

/** Whether a usage object says how often was searched: xAI's, which also has a total of all tools, or OpenRouter's. */
function tellsSearches(usage: UsageObject | null): boolean {
  if (usage === null) return false;
  const counts = [
    usage['num_server_side_tools_used'],
    objectOf(usage['server_side_tool_usage_details'])['web_search_calls'],
    objectOf(usage['server_tool_use'] ?? usage['server_tool_use_details'])['web_search_requests'],
  ];
  return counts.some((count) => typeof count === 'number');
}

const NO_CALLS: readonly ToolCalls[] = [];
/** More than the events of a stream that repeat the response; parsing what is no JSON costs microseconds each time. */
const OWN_REPORTS_MAX = 16;

/** Where the object behind this key lies; `start`: -1 where it is none, `end`: also where it has no end. */
function toolUsageAt(bytes: Buffer, key: number): { readonly start: number; readonly end: number } {
  const start = objectStart(bytes, key + TOOL_USAGE_KEY.key.length);
  return { start, end: start === -1 ? -1 : objectEnd(bytes, start) };
}

function parseToolUsage(bytes: Buffer, key: number): UsageObject | null {
  const { start, end } = toolUsageAt(bytes, key);
  return parseObject(bytes.toString('latin1', start, end));
}

/**
 * Anthropic's search among the tools of a request: it passes as a tool, costs nothing of its own, and what it finds is
 * counted as input.
 */
const FREE_TOOL_COUNTS = ['tool_search_requests'];

/** What a usage object itself says was used that no price can be for. */
function unpricedUsage(usage: UsageObject, calls: readonly ToolCalls[]): string | null {
  const { num_server_side_tools_used: toolCalls, iterations, service_tier: tier } = usage;
  if (tier != null && typeof tier !== 'string') return 'service_tier ?';
  // xAI's total. Where the tools are told apart they are priced each.
  const known = calls.reduce((sum, { count }) => sum + (count ?? 0), 0);
  if (typeof toolCalls === 'number' && toolCalls > known) return 'num_server_side_tools_used';
  // The totals of the reply are those of its messages: a compaction, or advice of another model, is billed beside them.
  const types = Array.isArray(iterations) ? iterations.map((iteration) => objectOf(iteration)['type']) : [];
  const beside = types.findIndex((type) => type !== 'message');
  if (beside === -1) return null;
  const type = types[beside];
  return `iterations ${typeof type === 'string' ? shorten(type) : '?'}`;
}

/** Where usage objects have the calls of tools: of Anthropic and OpenRouter, of xAI, of Perplexity in both its APIs. */
function callsIn(usage: UsageObject): readonly ToolCalls[] {
  const { server_side_tool_usage_details: details, num_search_queries: queries, tool_calls_details: byAgent } = usage;
  // OpenRouter has had both names.
  const tools = usage['server_tool_use'] ?? usage['server_tool_use_details'];
  if (tools == null && details == null && queries == null && byAgent == null) return NO_CALLS;
  return eachOnce([
    ...usedCalls('server_tool_use', tools),
    ...usedCalls('server_side_tool_usage_details', details),
    ...usedCalls('tool_calls_details', byAgent),
    ...usedCalls('usage', { num_search_queries: queries }),
  ]);
}

/** Two names of one tool report the same calls: the most that one of them says. null: nobody knows. */
function eachOnce(calls: readonly ToolCalls[]): readonly ToolCalls[] {
  const most = new Map<string, ToolCalls>();
  for (const call of calls) {
    const known = most.get(call.tool);
    if (known === undefined || (known.count !== null && (call.count ?? Number.POSITIVE_INFINITY) > known.count))
      most.set(call.tool, call);
  }
  return most.size === calls.length ? calls : [...most.values()];
}

/** One of xAI's ticks, of which a dollar has 10^10. */
const PICO_USD_PER_TICK = 100n;

/** What xAI, Perplexity or OpenRouter says that the reply cost; null: none of them. */
function costIn(usage: UsageObject): PicoUsd | null {
  const { cost_in_usd_ticks: ticks, cost, is_byok: hasOwnKey, cost_details: details } = usage;
  if (ticks != null) return readUnits(ticks, PICO_USD_PER_TICK);
  if (typeof cost === 'object' && cost !== null) {
    const { total_cost: total, currency = 'USD' } = objectOf(cost);
    return currency === 'USD' ? readUsdNumber(total) : null;
  }
  const asked = readUsdNumber(cost);
  if (asked === null || hasOwnKey !== true) return asked;
  // On a key of the operator's at OpenRouter's provider, that one sends a bill of its own.
  const upstream = readUsdNumber(objectOf(details)['upstream_inference_cost']);
  return upstream === null ? null : picoUsd(asked + upstream);
}

/** Parts of the counts that are audio. */
function audioIn(usage: UsageObject): UsageDetails | null {
  const input = objectOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const output = objectOf(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const inputAudioTokens = countAboveZero(input['audio_tokens']);
  const outputAudioTokens = countAboveZero(output['audio_tokens']);
  if (inputAudioTokens === null && outputAudioTokens === null) return null;
  const cachedAudioTokens = countAboveZero(objectOf(input['cached_tokens_details'])['audio_tokens']);
  return {
    ...(inputAudioTokens === null ? {} : { inputAudioTokens }),
    ...(cachedAudioTokens === null ? {} : { cachedAudioTokens }),
    ...(outputAudioTokens === null ? {} : { outputAudioTokens }),
  };
}

function countAboveZero(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** The counts of a report, with what its usage object says beside them, as Anthropic's. */
export function withDetails(counts: Usage, usage: UsageObject, reply: KeptReply): Usage {
  const { service_tier: serviceTier, speed, inference_geo: geo } = usage;
  const calls = callsIn(usage);
  const audio = audioIn(usage);
  const unpriced = unpricedUsage(usage, calls);
  const tier = isTold(reply, 'serviceTiers', serviceTier) ? shorten(serviceTier) : null;
  const ownSpeed = isTold(reply, 'speeds', speed) ? shorten(speed) : null;
  const region = isTold(reply, 'geos', geo) ? shorten(geo) : null;
  const cost = reply.tellsCost === true ? costIn(usage) : null;
  const isPlain = tier === null && ownSpeed === null && region === null && audio === null && cost === null;
  if (isPlain && unpriced === null && calls.length === 0) return counts;
  const details: UsageDetails = {
    ...audio,
    ...(cost === null ? {} : { reportedCost: cost }),
    ...(calls.length === 0 ? {} : { calls }),
    ...(tier === null ? {} : { serviceTier: tier }),
    ...(ownSpeed === null ? {} : { speed: ownSpeed }),
    ...(region === null ? {} : { geo: region }),
    ...(unpriced === null ? {} : { unpriced }),
  };
  return { ...counts, details };
}

/** The counts of a report with the cost that it tells, of an API whose cost depends on nothing else beside them. */
export function withCost(counts: Usage, usage: UsageObject | null, { tellsCost }: KeptReply): Usage {
  const reportedCost = usage === null || tellsCost !== true ? null : costIn(usage);
  return reportedCost === null ? counts : { ...counts, details: { reportedCost } };
}

/** The part of a reply that is searched, and how deep a place in it lies. */
class ReplyPlace {
  readonly bytes: Buffer;
  private readonly reply: KeptReply;
  private readonly isDocument: boolean;
  private readonly eventDepth: number;

  constructor(reply: KeptReply, eventDepth: number, bytesMax: number) {
    this.reply = reply;
    this.isDocument = isDocument(reply.beginning);
    this.eventDepth = eventDepth;
    const { end, condensed } = reply;
    if (this.isDocument) this.bytes = condensed ?? end;
    else this.bytes = end.length <= bytesMax ? end : end.subarray(end.length - bytesMax);
  }

  /** The first such key at or behind `from`; -1: there is none. */
  find({ key, probe, probeAt }: SoughtKey, from: number): number {
    for (let at = this.bytes.indexOf(probe, from + probeAt); at !== -1; at = this.bytes.indexOf(probe, at + 1)) {
      if (matchesAt(this.bytes, at - probeAt, key)) return at - probeAt;
    }
    return -1;
  }

  /**
   * Those of these keys, which are in ascending order, that are the reply's own: what callers and models write lies
   * further inside. Each byte is passed once, however many keys there are: a caller may have written them all.
   */
  thoseAtTop(keys: readonly number[]): readonly number[] {
    if (keys.length === 0) return keys;
    const { beginning, end, condensed } = this.reply;
    const hasStart = condensed != null || end.length === beginning.length;
    if (!this.isDocument || !hasStart) return this.seenFromEnd(keys);
    const depths = new DepthFromStart(this.bytes, 0);
    return keys.filter((key) => depths.at(key) === 1);
  }

  /** Whether no event with data follows the one of this key; a document is one. */
  isInLastEvent(key: number): boolean {
    if (this.isDocument) return true;
    const { bytes } = this;
    for (let line = bytes.indexOf(DATA_LINE, key); line !== -1; line = bytes.indexOf(DATA_LINE, line + 1)) {
      if (bytes[skipSpace(bytes, line + DATA_LINE.length)] === OPEN_BRACE) return false;
    }
    return true;
  }

  /** Of events, each line is a document of its own. Of what broke off, the last one has no end to count depths from. */
  private seenFromEnd(keys: readonly number[]): readonly number[] {
    const { bytes } = this;
    const own: number[] = [];
    let lineStart = bytes.length;
    let depths: DepthFromEnd | null = null;
    for (const key of keys.toReversed()) {
      if (key < lineStart) {
        const lineEnd = this.isDocument ? -1 : bytes.indexOf(LINE_FEED, key);
        lineStart = this.isDocument ? 0 : bytes.lastIndexOf(LINE_FEED, key) + 1;
        const isOver = lineEnd !== -1 || !this.reply.cut;
        depths = isOver ? new DepthFromEnd(bytes, lineEnd === -1 ? bytes.length : lineEnd) : null;
      }
      if (depths?.at(key) === (this.isDocument ? 1 : this.eventDepth)) own.push(key);
    }
    return own.toReversed();
  }
}

/** The text that is a key's value, as it is written; null where it is no string. */
function textAfter(bytes: Buffer, afterKey: number): string | null {
  const open = valueAfterKey(bytes, afterKey);
  if (bytes[open] !== QUOTE) return null;
  const close = bytes.indexOf(QUOTE, open + 1);
  return close === -1 ? null : shorten(bytes.toString('latin1', open + 1, Math.min(close, open + 1 + VALUE_BYTES_MAX)));
}

/** As a record's error code can hold it. */
function shorten(text: string): string {
  return text.slice(0, VALUE_BYTES_MAX).replaceAll(/[^\w.-]/g, '?');
}

function hasDigitAboveZero(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((bytes[at] as number) >= 0x31 && (bytes[at] as number) <= 0x39) return true;
  return false;
}

const CALLS_MAX = 16;
/** How reports name the calls of a tool. */
const CALLS_SUFFIX = /(?:\.num_requests|\.invocation|_requests|_calls)$/;

/**
 * The numbers in a report that are not zero, each with its path; nobody knows the cost of those that are no count. It
 * does not call itself, since a report may be deeper than calls can be.
 */
function usedCalls(source: string, report: unknown): readonly ToolCalls[] {
  const found: ToolCalls[] = [];
  const open: { readonly path: string; readonly value: unknown }[] = [{ path: '', value: report }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { path, value } = next;
    if (typeof value === 'number' ? value !== 0 : typeof value === 'string' && Number(value) > 0) {
      // Of so many nobody has prices: the count of the last one says so.
      const isLast = found.length === CALLS_MAX - 1;
      const count = typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && !isLast ? value : null;
      found.push({ tool: toolNamed(path), count, reportedAs: `${source} ${shorten(path)}` });
      if (isLast) return found;
    }
    for (const [name, inner] of Object.entries(objectOf(value)).toReversed()) {
      if (!FREE_TOOL_COUNTS.includes(name)) open.push({ path: path === '' ? name : `${path}.${name}`, value: inner });
    }
  }
  return found;
}

/** How Perplexity names the searches that its requests call `web_search`. */
const PERPLEXITY_SEARCHES = ['num_search_queries', 'search_web'];

function toolNamed(path: string): string {
  const name = shorten(path).replace(CALLS_SUFFIX, '');
  return PERPLEXITY_SEARCHES.includes(name) ? 'web_search' : name;
}
