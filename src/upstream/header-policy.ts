// Which headers pass, in both directions: an allowlist. Credentials, cookies, hop-by-hop fields, brand headers and
// client labels are not on it, so they never reach a provider, and no provider credential or account name comes back.

import { Buffer } from 'node:buffer';
import type { Refusal } from '../domain/refusals/refusal.ts';
import { HeaderLines } from './http1/request-head.ts';

/**
 * Every request has a different one. Remembering its headers would only evict an entry that will be used again. Where
 * organizations share an account, whoever calls the provider changes its value (generation/reply/idempotency-key.ts).
 */
export const IDEMPOTENCY_KEY = 'idempotency-key';

const REQUEST_NAMES = new Set(['accept', 'accept-language', 'content-type', 'user-agent', IDEMPOTENCY_KEY]);
const REQUEST_PREFIXES = ['openai-', 'anthropic-', 'x-stainless-'];
// These select an account of the client's own credential, which the provider does not see.
const REQUEST_NAMES_REFUSED = new Set(['openai-organization', 'openai-project']);

const REPLY_NAMES = new Set([
  'content-type',
  // Requests ask for no compression; a reply that is compressed all the same cannot be read without this header.
  'content-encoding',
  'content-disposition',
  'content-language',
  'cache-control',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'cf-ray',
]);
const REPLY_PREFIXES = ['openai-', 'anthropic-', 'x-ratelimit-', 'ratelimit'];
// These name the provider account of the operator.
const REPLY_NAMES_REFUSED = new Set(['openai-organization', 'openai-project', 'anthropic-organization-id']);

/**
 * Decisions by header name: there are few names in all traffic, and a Map look-up is cheaper than six comparisons.
 * Bounded.
 */
const requestDecisions = new Map<string, boolean>();
const replyDecisions = new Map<string, boolean>();
const DECISIONS_MAX = 1_000;

function decide(
  name: string,
  decisions: Map<string, boolean>,
  names: Set<string>,
  prefixes: readonly string[],
  refused: Set<string>,
): boolean {
  return decisions.get(name) ?? decideAnew(name, decisions, names, prefixes, refused);
}

/**
 * A separate function, because it has a closure: for variables that a closure uses, V8 allocates an object in each call
 * of the function around it, and `decide` is called for every header.
 */
function decideAnew(
  name: string,
  decisions: Map<string, boolean>,
  names: Set<string>,
  prefixes: readonly string[],
  refused: Set<string>,
): boolean {
  const passes = !refused.has(name) && (names.has(name) || prefixes.some((prefix) => name.startsWith(prefix)));
  if (decisions.size < DECISIONS_MAX) decisions.set(name, passes);
  return passes;
}

/**
 * Headers of a recent request and the lines written from them. A client sends nearly the same headers in all of its
 * requests, and comparing them costs less than deciding about each and writing it again.
 */
interface RecentHeaders {
  /**
   * The client's names and values, alternating. The value of a header that is not forwarded is null: it may differ in
   * each request, and credentials are not kept here.
   */
  readonly pattern: readonly (string | null)[];
  readonly lines: HeaderLines;
}

const RECENT_MAX = 8;
const recent: RecentHeaders[] = [];
let oldestRecent = 0;

/**
 * The client's headers to forward: names and values, alternating, or the lines that were written from the same headers
 * for a recent request.
 */
export type ForwardedHeaders = readonly string[] | HeaderLines;

/** A refusal names a header that should be forwarded but cannot be written. */
export function forwardedHeaders(clientHeaders: readonly string[]): ForwardedHeaders | Refusal {
  for (const known of recent) if (matches(known.pattern, clientHeaders)) return known.lines;
  let isUnique = false;
  const headers: string[] = [];
  const pattern: (string | null)[] = [];
  for (let index = 0; index < clientHeaders.length; index += 2) {
    const name = clientHeaders[index] as string;
    const value = clientHeaders[index + 1] as string;
    const passes = isForwarded(name);
    if (passes) {
      const written = writtenValue(value);
      if (written === null) return { kind: 'unsendable_header', name };
      headers.push(name, written);
    }
    pattern.push(name, passes ? value : null);
    if (name === IDEMPOTENCY_KEY) isUnique = true;
  }
  if (isUnique) return headers;
  const lines = new HeaderLines(headers);
  recent[oldestRecent] = { pattern, lines };
  oldestRecent = (oldestRecent + 1) % RECENT_MAX;
  return lines;
}

const PLAIN_VALUE = /^[\t\x20-\x7e]*$/;
/**
 * Control characters, and the replacement that uWebSockets.js writes for bytes that are not UTF-8: the original bytes
 * are lost.
 */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSENDABLE = /[\x00-\x08\x0a-\x1f\x7f\ufffd]/;

/**
 * The bytes that the client sent, one character per byte, as a head is written; uWebSockets.js has decoded them as
 * UTF-8. null: they cannot be written.
 */
function writtenValue(value: string): string | null {
  if (PLAIN_VALUE.test(value)) return value;
  return UNSENDABLE.test(value) ? null : Buffer.from(value, 'utf8').toString('latin1');
}

function matches(pattern: readonly (string | null)[], headers: readonly string[]): boolean {
  if (pattern.length !== headers.length) return false;
  for (let index = 0; index < headers.length; index += 2) {
    if (pattern[index] !== headers[index]) return false;
    const value = pattern[index + 1];
    if (value !== null && value !== headers[index + 1]) return false;
  }
  return true;
}

/** Whether a client's header of this name, in small letters, goes along to providers. */
export function isForwarded(name: string): boolean {
  return decide(name, requestDecisions, REQUEST_NAMES, REQUEST_PREFIXES, REQUEST_NAMES_REFUSED);
}

/** Whether a header of the provider's reply is passed to the client. */
export function passesToClient(name: string): boolean {
  return decide(name, replyDecisions, REPLY_NAMES, REPLY_PREFIXES, REPLY_NAMES_REFUSED);
}
