// Reads the head of an HTTP/1.1 reply (RFC 9112 4 to 6). Strict: what follows a reply on a kept connection is taken for
// the next one, so whatever could be framed in two ways is a fault, never a guess.

import { Buffer } from 'node:buffer';
import { readContentLength } from '../../platform/content-length.ts';
import { holdsAt } from '../../platform/holds-at.ts';
import { type FramingField, type HeaderName, headerNameAt } from './known-headers.ts';

/** Names in lower case and values, alternating, in the order in which they came. */
export type ReplyHeaders = readonly string[];

/** How the end of a reply's body is told. */
export type Framing = 'none' | 'length' | 'chunked' | 'until_close';

export interface ReplyHead {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly framing: Framing;
  /** Of the body where the framing is `length`, else 0. */
  readonly bodyBytes: number;
  /** The connection may carry another exchange. */
  readonly keepAlive: boolean;
  /** How long the server says that it keeps an idle connection; null: it does not say. */
  readonly keepAliveHintMs: number | null;
}

/** Why bytes are no reply that may be relayed; for people, never for clients. */
export type ReplyFault = string;

/** The first value of a header; names in lower case. */
export function replyHeader(headers: ReplyHeaders, name: string): string | undefined {
  for (let index = 0; index < headers.length; index += 2) if (headers[index] === name) return headers[index + 1];
  return undefined;
}

const KEEP_ALIVE_TIMEOUT = /(?:^|,)[\t ]*timeout=(\d{1,6})/i;
const STATUS_LINE_BYTES_MIN = 'HTTP/1.1 200'.length;
const SPACE = 0x20;
const TAB = 0x09;
const CR = 0x0d;
const LF = 0x0a;
const DELETE = 0x7f;
const ZERO = 0x30;
const ONE = 0x31;

/** What the lines of a head say about its framing. */
class FramingFields {
  contentLength = -1;
  chunked = false;
  closes = false;
  keepAliveHintMs: number | null = null;

  /** A fault, or null. */
  read(field: FramingField, value: string): ReplyFault | null {
    switch (field) {
      case 'content-length':
        // RFC 9112 6.3: a list of equal lengths may be taken for one of them; no provider has a reason to send it.
        if (this.contentLength !== -1) return 'content-length twice';
        this.contentLength = readContentLength(value);
        return this.contentLength === -1 ? 'a content-length that is no number' : null;
      case 'transfer-encoding':
        // We never said that we take another coding (RFC 9112 7.4), and could not relay what lies in it.
        if (this.chunked || value.toLowerCase() !== 'chunked') return 'a transfer-encoding other than chunked';
        this.chunked = true;
        return null;
      case 'connection':
        if (value !== 'keep-alive') this.readConnection(value);
        return null;
      case 'keep-alive': {
        const timeout = KEEP_ALIVE_TIMEOUT.exec(value)?.[1];
        if (timeout !== undefined) this.keepAliveHintMs = Number(timeout) * 1_000;
        return null;
      }
    }
  }

  private readConnection(value: string): void {
    for (const option of value.toLowerCase().split(',')) if (option.trim() === 'close') this.closes = true;
  }
}

/** The head lies from `start` to `end`, with the CRLF of its last line and without the empty line behind it. */
export function readReplyHead(bytes: Buffer, start: number, end: number): ReplyHead | ReplyFault {
  let lineEnd = endOfLine(bytes, start, end);
  if (lineEnd === -1) return CONTROL_CHARACTER;
  const status = readStatusLine(bytes, start, lineEnd);
  if (status === -1) return 'no HTTP/1.1 status line';
  const headers: string[] = [];
  const fields = new FramingFields();
  let name: HeaderName | null = null;
  // One string for the whole head, if any: the values that are new are slices of it.
  let text = '';
  for (let at = lineEnd + 2; at < end; at = lineEnd + 2) {
    // A line that begins with a space would be the rest of the one before (RFC 9112 5.2): no token, so no name.
    name = headerNameAt(bytes, at, end, name);
    if (name === null) return 'a header line without a name';
    const from = skipBlanks(bytes, at + name.bytes.length);
    const known = name.valueAt(bytes, from);
    let value: string;
    if (known !== null) {
      value = known.text;
      lineEnd = from + known.bytes.length - 2;
    } else {
      lineEnd = endOfLine(bytes, from, end);
      if (lineEnd === -1) return CONTROL_CHARACTER;
      if (text === '') text = bytes.toString('latin1', start, end);
      value = text.slice(from - start, skipBlanksBack(bytes, from, lineEnd) - start);
      name.learn(value, bytes, from, lineEnd + 2);
    }
    const fault = name.framing === null ? null : fields.read(name.framing, value);
    if (fault !== null) return fault;
    headers.push(name.lowerCase, value);
  }
  return frame(status, headers, fields, bytes[start + 7] === ONE);
}

const CONTROL_CHARACTER: ReplyFault = 'a control character in the head';

/**
 * Where the CRLF of the line stands; -1 when there is what may not be in a head but at the end of its lines: control
 * characters, a bare CR, a bare LF.
 */
function endOfLine(bytes: Buffer, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === CR) return at + 1 < end && bytes[at + 1] === LF ? at : -1;
    if (byte === DELETE || (byte < SPACE && byte !== TAB)) return -1;
  }
  return -1;
}

/** RFC 9112 4: the space after the code may be missing where the reason is. -1: it is no status line. */
function readStatusLine(bytes: Buffer, start: number, end: number): number {
  if (end - start < STATUS_LINE_BYTES_MIN || !(holdsAt(bytes, start, HTTP_11) || holdsAt(bytes, start, HTTP_10)))
    return -1;
  if (end - start > STATUS_LINE_BYTES_MIN && bytes[start + STATUS_LINE_BYTES_MIN] !== SPACE) return -1;
  let status = 0;
  for (let at = start + HTTP_11.length; at < start + STATUS_LINE_BYTES_MIN; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : -1;
}

const HTTP_11 = Buffer.from('HTTP/1.1 ');
const HTTP_10 = Buffer.from('HTTP/1.0 ');

function skipBlanks(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at++;
  return at;
}

function skipBlanksBack(bytes: Buffer, from: number, to: number): number {
  let end = to;
  while (end > from && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end--;
  return end;
}

function frame(
  status: number,
  headers: ReplyHeaders,
  fields: FramingFields,
  isHttp11: boolean,
): ReplyHead | ReplyFault {
  const { contentLength, chunked, closes, keepAliveHintMs } = fields;
  if (chunked && contentLength !== -1) return 'both content-length and transfer-encoding';
  // RFC 9112 6.1: the framing of such a reply is faulty.
  if (chunked && !isHttp11) return 'transfer-encoding in HTTP/1.0';
  let keepAlive = isHttp11 && !closes;
  let framing: Framing = chunked
    ? 'chunked'
    : contentLength === -1
      ? 'until_close'
      : contentLength === 0
        ? 'none'
        : 'length';
  if (status < 200 || status === 204 || status === 304) {
    // They have no body, whatever they say (RFC 9112 6.3); one that says it has may send it all the same.
    if (chunked || (contentLength > 0 && status !== 304)) keepAlive = false;
    framing = 'none';
  }
  if (framing === 'until_close') keepAlive = false;
  return { status, headers, framing, bodyBytes: framing === 'length' ? contentLength : 0, keepAlive, keepAliveHintMs };
}
