// Writes the head of an HTTP/1.1 request, and is the last guard against a value that would end its line or its head
// early.

import type { PooledBuffer } from '../../platform/buffer-pool.ts';

/** What a request to a provider consists of. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** The headers of every request to this provider, its credential among them; they come first. */
  readonly providerHeaders?: HeaderLines;
  /** Names and values, alternating; or lines that were written for an earlier request with the same headers. */
  readonly headers: readonly string[] | HeaderLines;
  /** null: the request has none. */
  readonly body: Buffer | OutgoingBody | null;
}

/** A body that is written piece by piece, as its parts lie in memory. */
export interface OutgoingBody {
  readonly pieces: readonly Buffer[];
  /**
   * The pooled buffer that the pieces lie in; whoever sends from it holds it meanwhile. null: the memory belongs to
   * this request alone.
   */
  readonly pooled: PooledBuffer | null;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const NOT_IN_PATH = /[^\x21-\x7e\x80-\xff]/;
/** Headers that only this client may write: a second one could frame the request in another way. */
const FRAMING_NAMES = new Set([
  'content-length',
  'transfer-encoding',
  'host',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);

/** Whether a name may be sent. There are few names in all traffic, so the answers are remembered, up to a bound. */
const knownNames = new Map<string, boolean>();
const KNOWN_NAMES_MAX = 1_000;

function mayBeSent(name: string): boolean {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const may = TOKEN.test(name) && !FRAMING_NAMES.has(name.toLowerCase());
  if (knownNames.size < KNOWN_NAMES_MAX) knownNames.set(name, may);
  return may;
}

/**
 * The headers as lines; null: a header is not allowed, because it could turn one request into two (request smuggling).
 */
function headerLines(headers: readonly string[]): string | null {
  let lines = '';
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    const value = headers[index + 1] as string;
    if (!mayBeSent(name) || NOT_IN_VALUE.test(value)) return null;
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** The header lines of many requests, checked and written once. */
export class HeaderLines {
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  /** null: one of the headers is not allowed, because it could turn one request into two (request smuggling). */
  readonly text: string | null;

  constructor(headers: readonly string[]) {
    this.headers = headers;
    this.text = headerLines(headers);
    // V8 keeps a concatenated string as its pieces until a character of it is read. Reading one here joins the pieces
    // once, instead of in every request.
    this.text?.charCodeAt(0);
  }
}

/**
 * The request's head; one character is one byte. null: a header or the path could turn one request into two, so the
 * request must not be sent.
 */
export function requestHead(request: UpstreamRequest, host: string): string | null {
  const { method, path, providerHeaders, headers } = request;
  const providerLines = providerHeaders === undefined ? '' : providerHeaders.text;
  const lines = headers instanceof HeaderLines ? headers.text : headerLines(headers);
  if (providerLines === null || lines === null || !path.startsWith('/') || NOT_IN_PATH.test(path)) return null;
  const start = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  return `${start}${providerLines}${lines}${contentLength(request)}\r\n`;
}

/** RFC 9110 8.6: a request whose method usually has content states its length even when it has none. */
function contentLength({ method, body }: UpstreamRequest): string {
  const bodyBytes = body === null ? 0 : body instanceof Uint8Array ? body.length : bytesOf(body.pieces);
  const saysSo = bodyBytes > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH';
  return saysSo ? `content-length: ${bodyBytes}\r\n` : '';
}

function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}
