// Reads what a reply says, beside its counts, that its cost depends on: a service tier, a speed, a region, tools that
// the provider ran. If the price does not cover one of them, the reply is charged as held, and the record says why
// (domain/settlement/settle.ts). The reply is not parsed: only values that are not plain are examined further.

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
 * A key, and the part of it that is searched for: it begins at a letter that is rare in texts, and is short
 * (output-limit.ts says why).
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

/** Chunks of a Chat Completions stream repeat the tier, so the last chunks are enough. */
export const LAST_CHUNKS_BYTES = 8_192;

/**
 * The service tier that a reply names last; null: it names none, or only the plain one (`isRecorded`). `eventDepth` is
 * the key's depth in the data of an event; in a document it is 1.
 */
export function servedTier(reply: KeptReply, eventDepth: number, bytesMax = Number.MAX_SAFE_INTEGER): string | null {
  const searched = new SearchedReply(reply, eventDepth, bytesMax);
  const keys: number[] = [];
  for (let key = searched.find(TIER_KEY, 0); key !== -1; key = searched.find(TIER_KEY, key + 1)) {
    if (isRecorded(reply, 'serviceTiers', tierAt(searched.bytes, key))) keys.push(key);
  }
  const own = searched.atTopLevel(keys).at(-1);
  return own === undefined ? null : tierAt(searched.bytes, own);
}

/** The tier as usage details; null: there is none. */
export function tierDetails(
  reply: KeptReply,
  eventDepth: number,
  bytesMax = Number.MAX_SAFE_INTEGER,
): UsageDetails | null {
  const serviceTier = servedTier(reply, eventDepth, bytesMax);
  return serviceTier === null ? null : { serviceTier };
}

/**
 * Whether `name` is to be recorded. A plain name is recorded only if the request or the price has named another one;
 * `auto` never is.
 */
function isRecorded({ needsPlainNames }: KeptReply, kind: VariationKind, name: unknown): name is string {
  return typeof name === 'string' && (needsPlainNames === true ? name !== 'auto' : !PLAIN[kind].includes(name));
}

function tierAt(bytes: Buffer, key: number): string | null {
  return textAfter(bytes, key + TIER_KEY.key.length);
}

/**
 * The tools that the provider of a Responses reply ran, as it reports them, zeros included. `maySearch`: the request
 * let the provider search. Not every provider reports searches as usage, so without a report an item of a search
 * counts, although the search may have failed or opened a page.
 */
export function servedTools(
  reply: KeptReply,
  maySearch: boolean,
  readUsage: () => UsageObject | null,
): readonly ToolCalls[] {
  const searched = new SearchedReply(reply, 2, Number.MAX_SAFE_INTEGER);
  const keys: number[] = [];
  const used: number[] = [];
  for (let key = searched.find(TOOL_USAGE_KEY, 0), from = 0; key !== -1; key = searched.find(TOOL_USAGE_KEY, from)) {
    const { start, end } = toolUsageAt(searched.bytes, key);
    // Keys within the object are not the reply's own. An object without an end is at least that long.
    from = start === -1 ? key + 1 : end === -1 ? start + OBJECT_BYTES_MAX : end;
    if (end === -1) continue;
    keys.push(key);
    if (hasDigitAboveZero(searched.bytes, start, end)) used.push(key);
  }
  for (const key of searched.atTopLevel(used).slice(0, OWN_REPORTS_MAX)) {
    const calls = usedCalls('tool_usage', parseToolUsage(searched.bytes, key));
    if (calls.length > 0) return calls;
  }
  if (!maySearch || !(hasSearchItem(reply.end) || hasSearchItem(reply.beginning))) return NO_CALLS;
  const last = searched.atTopLevel(keys).at(-1);
  // Earlier events may say zero because nothing had been searched yet.
  const report = last !== undefined && searched.isInLastEvent(last) ? parseToolUsage(searched.bytes, last) : null;
  const isReported = typeof objectOf(objectOf(report)['web_search'])['num_requests'] === 'number';
  return isReported || reportsSearches(readUsage())
    ? NO_CALLS
    : [{ tool: 'web_search', count: null, reportedAs: 'tool_usage web_search' }];
}

/**
 * Whether these bytes contain an item of a search. A client's function may have the same name, so the key is checked.
 */
function hasSearchItem(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(SEARCH_CALL); at !== -1; at = bytes.indexOf(SEARCH_CALL, at + SEARCH_CALL.length)) {
    if (keyBefore(bytes, at, TYPE_KEY) !== -1) return true;
  }
  return false;
}

/**
 * Whether a usage object reports how many searches there were: xAI's, which also has a total of all tools, or
 * OpenRouter's.
 */
function reportsSearches(usage: UsageObject | null): boolean {
  if (usage === null) return false;
  const counts = [
    usage['num_server_side_tools_used'],
    objectOf(usage['server_side_tool_usage_details'])['web_search_calls'],
    objectOf(usage['server_tool_use'] ?? usage['server_tool_use_details'])['web_search_requests'],
  ];
  return counts.some((count) => typeof count === 'number');
}

const NO_CALLS: readonly ToolCalls[] = [];
/**
 * More than the events of a stream that repeat the response. Parsing one that is not JSON costs microseconds each time.
 */
const OWN_REPORTS_MAX = 16;

/** Where the object after this key is. `start` is -1 if the value is no object, `end` also if the object has no end. */
function toolUsageAt(bytes: Buffer, key: number): { readonly start: number; readonly end: number } {
  const start = objectStart(bytes, key + TOOL_USAGE_KEY.key.length);
  return { start, end: start === -1 ? -1 : objectEnd(bytes, start) };
}

function parseToolUsage(bytes: Buffer, key: number): UsageObject | null {
  const { start, end } = toolUsageAt(bytes, key);
  return parseObject(bytes.toString('latin1', start, end));
}

/**
 * Anthropic's search among the request's tools: it is listed as a tool, costs nothing itself, and its findings are
 * counted as input.
 */
const FREE_TOOL_COUNTS = ['tool_search_requests'];

/** What a usage object reports as used that no price can cover; null: nothing. */
function unpricedUsage(usage: UsageObject, calls: readonly ToolCalls[]): string | null {
  const { num_server_side_tools_used: toolCalls, iterations, service_tier: tier } = usage;
  if (tier != null && typeof tier !== 'string') return 'service_tier ?';
  // xAI's total of tool calls. Calls that are reported by tool are priced by tool.
  const known = calls.reduce((sum, { count }) => sum + (count ?? 0), 0);
  if (typeof toolCalls === 'number' && toolCalls > known) return 'num_server_side_tools_used';
  // The reply's totals cover its messages only: a compaction, or another model's advice, is billed beside them.
  const types = Array.isArray(iterations) ? iterations.map((iteration) => objectOf(iteration)['type']) : [];
  const other = types.findIndex((type) => type !== 'message');
  if (other === -1) return null;
  const type = types[other];
  return `iterations ${typeof type === 'string' ? shorten(type) : '?'}`;
}

/** The tool calls in a usage object of Anthropic and OpenRouter, of xAI, or of Perplexity in both its APIs. */
function callsIn(usage: UsageObject): readonly ToolCalls[] {
  const { server_side_tool_usage_details: details, num_search_queries: queries, tool_calls_details: byAgent } = usage;
  // OpenRouter has used both names.
  const tools = usage['server_tool_use'] ?? usage['server_tool_use_details'];
  if (tools == null && details == null && queries == null && byAgent == null) return NO_CALLS;
  return eachOnce([
    ...usedCalls('server_tool_use', tools),
    ...usedCalls('server_side_tool_usage_details', details),
    ...usedCalls('tool_calls_details', byAgent),
    ...usedCalls('usage', { num_search_queries: queries }),
  ]);
}

/**
 * Two names of one tool report the same calls, so the larger count is taken. A count of null, which means unknown,
 * wins.
 */
function eachOnce(calls: readonly ToolCalls[]): readonly ToolCalls[] {
  const most = new Map<string, ToolCalls>();
  for (const call of calls) {
    const known = most.get(call.tool);
    if (known === undefined || (known.count !== null && (call.count ?? Number.POSITIVE_INFINITY) > known.count))
      most.set(call.tool, call);
  }
  return most.size === calls.length ? calls : [...most.values()];
}

/** xAI's tick: a dollar has 10^10 of them. */
const PICO_USD_PER_TICK = 100n;

/** The reply's cost as xAI, Perplexity or OpenRouter reports it; null: not reported. */
function costIn(usage: UsageObject): PicoUsd | null {
  const { cost_in_usd_ticks: ticks, cost, is_byok: hasOwnKey, cost_details: details } = usage;
  if (ticks != null) return readUnits(ticks, PICO_USD_PER_TICK);
  if (typeof cost === 'object' && cost !== null) {
    const { total_cost: total, currency = 'USD' } = objectOf(cost);
    return currency === 'USD' ? readUsdNumber(total) : null;
  }
  const asked = readUsdNumber(cost);
  if (asked === null || hasOwnKey !== true) return asked;
  // If OpenRouter used the operator's own key at a provider, that provider sends its own bill.
  const upstream = readUsdNumber(objectOf(details)['upstream_inference_cost']);
  return upstream === null ? null : picoUsd(asked + upstream);
}

/** The audio parts of the counts; null: there are none. */
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

/** The counts of a report, with the details that its usage object contains, as Anthropic's does. */
export function withDetails(counts: Usage, usage: UsageObject, reply: KeptReply): Usage {
  const { service_tier: serviceTier, speed, inference_geo: geo } = usage;
  const calls = callsIn(usage);
  const audio = audioIn(usage);
  const unpriced = unpricedUsage(usage, calls);
  const tier = isRecorded(reply, 'serviceTiers', serviceTier) ? shorten(serviceTier) : null;
  const ownSpeed = isRecorded(reply, 'speeds', speed) ? shorten(speed) : null;
  const region = isRecorded(reply, 'geos', geo) ? shorten(geo) : null;
  const cost = reply.needsCost === true ? costIn(usage) : null;
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

/** The counts of a report with the reported cost, for an API whose cost depends on nothing else. */
export function withCost(counts: Usage, usage: UsageObject | null, { needsCost }: KeptReply): Usage {
  const reportedCost = usage === null || needsCost !== true ? null : costIn(usage);
  return reportedCost === null ? counts : { ...counts, details: { reportedCost } };
}

/** The part of a reply that is searched, and the depth of places in it. */
class SearchedReply {
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

  /** The first such key at or after `from`; -1: there is none. */
  find({ key, probe, probeAt }: SoughtKey, from: number): number {
    for (let at = this.bytes.indexOf(probe, from + probeAt); at !== -1; at = this.bytes.indexOf(probe, at + 1)) {
      if (matchesAt(this.bytes, at - probeAt, key)) return at - probeAt;
    }
    return -1;
  }

  /**
   * Returns those of `keys` (ascending) that are the reply's own: texts of callers and models are deeper. Each byte is
   * passed once, however many keys there are, since a caller may have written all of them.
   */
  atTopLevel(keys: readonly number[]): readonly number[] {
    if (keys.length === 0) return keys;
    const { beginning, end, condensed } = this.reply;
    const hasStart = condensed != null || end.length === beginning.length;
    if (!this.isDocument || !hasStart) return this.atTopLevelFromEnd(keys);
    const depths = new DepthFromStart(this.bytes, 0);
    return keys.filter((key) => depths.at(key) === 1);
  }

  /** Whether no event with data follows the key's event. A document is a single event. */
  isInLastEvent(key: number): boolean {
    if (this.isDocument) return true;
    const { bytes } = this;
    for (let line = bytes.indexOf(DATA_LINE, key); line !== -1; line = bytes.indexOf(DATA_LINE, line + 1)) {
      if (bytes[skipSpace(bytes, line + DATA_LINE.length)] === OPEN_BRACE) return false;
    }
    return true;
  }

  /**
   * Each line of an event stream is a document of its own. The last line of a stream that broke off has no end to count
   * depths from.
   */
  private atTopLevelFromEnd(keys: readonly number[]): readonly number[] {
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

/** A key's value as written, if it is a string; else null. */
function textAfter(bytes: Buffer, afterKey: number): string | null {
  const open = valueAfterKey(bytes, afterKey);
  if (bytes[open] !== QUOTE) return null;
  const close = bytes.indexOf(QUOTE, open + 1);
  return close === -1 ? null : shorten(bytes.toString('latin1', open + 1, Math.min(close, open + 1 + VALUE_BYTES_MAX)));
}

/** Makes a text fit into a record's error code. */
function shorten(text: string): string {
  return text.slice(0, VALUE_BYTES_MAX).replaceAll(/[^\w.-]/g, '?');
}

function hasDigitAboveZero(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((bytes[at] as number) >= 0x31 && (bytes[at] as number) <= 0x39) return true;
  return false;
}

const CALLS_MAX = 16;
/** The endings with which reports name the calls of a tool. */
const CALLS_SUFFIX = /(?:\.num_requests|\.invocation|_requests|_calls)$/;

/**
 * The numbers in a report that are not zero, each with its path. A number that is no valid count gets the count null,
 * since its cost is unknown. The search is iterative, since a report may be deeper than the call stack allows.
 */
function usedCalls(source: string, report: unknown): readonly ToolCalls[] {
  const found: ToolCalls[] = [];
  const open: { readonly path: string; readonly value: unknown }[] = [{ path: '', value: report }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { path, value } = next;
    if (typeof value === 'number' ? value !== 0 : typeof value === 'string' && Number(value) > 0) {
      // No price covers so many tools, so the last one's count is null, which makes the cost unknown.
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

/** Perplexity's names for the searches that its requests call `web_search`. */
const PERPLEXITY_SEARCHES = ['num_search_queries', 'search_web'];

function toolNamed(path: string): string {
  const name = shorten(path).replace(CALLS_SUFFIX, '');
  return PERPLEXITY_SEARCHES.includes(name) ? 'web_search' : name;
}
