// Reads the head of an HTTP/1.1 reply (RFC 9112 4 to 6). It is strict: bytes after a reply on a kept connection are
// taken for the next reply, so a head that could be framed in two ways is a fault, never a guess.

import { Buffer, isUtf8 } from 'node:buffer';
import { readContentLength } from '../../platform/bytes/content-length.ts';

/** Names in lower case and values, alternating, in the order in which they came. */
export type ReplyHeaders = readonly string[];

/** What marks the end of a reply's body. */
export type Framing = 'none' | 'length' | 'chunked' | 'until_close';

export interface ReplyHead {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly framing: Framing;
  /** The length of the body where the framing is `length`, else 0. */
  readonly bodyBytes: number;
  /** The connection may carry another exchange. */
  readonly keepAlive: boolean;
  /** How long the server says that it keeps an idle connection; null: it does not say. */
  readonly keepAliveHintMs: number | null;
}

/** Why the bytes are not a reply that may be relayed. For developers; no client sees it. */
export type ReplyFault = string;

/** The first value of a header; names in lower case. */
export function replyHeader(headers: ReplyHeaders, name: string): string | undefined {
  for (let index = 0; index < headers.length; index += 2) if (headers[index] === name) return headers[index + 1];
  return undefined;
}

const KEEP_ALIVE_TIMEOUT = /(?:^|,)[\t ]*timeout=(\d{1,6})/i;
/** RFC 9112 4 wants a space after the status code; a line without the reason may lack it here. */
const STATUS_LINE = /^HTTP\/1\.[01] [1-9]\d\d[ \r]/;
const MINOR_VERSION_AT = 'HTTP/1.'.length;
const STATUS_AT = 'HTTP/1.1 '.length;
const ZERO = 0x30;
/** Lines without control characters; CR and LF occur only as the CRLF that ends a line. */
const LINES = /^(?:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
/** The same in ASCII alone, as nearly every head is. */
const ASCII_LINES = /^(?:[\t\x20-\x7e]*\r\n)*$/;
const ASCII = /^[\t\x20-\x7e]*$/;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const SPACE = 0x20;
const TAB = 0x09;
const LINE_END_LENGTH = 2;

/** What the lines of a head say about its framing. */
class FramingFields {
  contentLength = -1;
  chunked = false;
  closes = false;
  keepAliveHintMs: number | null = null;

  /** A fault, or null. */
  read(name: string, value: string): ReplyFault | null {
    switch (name) {
      case 'content-length':
        // RFC 9112 6.3 allows a client to accept a list of equal lengths; no provider has a reason to send one.
        if (this.contentLength !== -1) return 'content-length twice';
        this.contentLength = readContentLength(value);
        return this.contentLength === -1 ? 'a content-length that is no number' : null;
      case 'transfer-encoding':
        // Requests offer no other coding (RFC 9112 7.4), and content in one could not be relayed.
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
      default:
        return null;
    }
  }

  private readConnection(value: string): void {
    for (const option of value.toLowerCase().split(',')) if (option.trim() === 'close') this.closes = true;
  }
}

const BEGINNING = Buffer.from('HTTP/1.');
const CR = 0x0d;
const LF = 0x0a;
const DELETE = 0x7f;

/**
 * The fault of a head that is not complete: its first `end` bytes are here, and the first `from` of them were checked
 * before. null: the head may still become a valid one. Without this check, the call would wait until its first-byte
 * timeout behind the banner of another protocol.
 */
export function faultOfBeginning(bytes: Buffer, from: number, end: number): ReplyFault | null {
  const compared = Math.min(end, BEGINNING.length);
  if (bytes.compare(BEGINNING, 0, compared, 0, compared) !== 0) return 'no HTTP/1.1 status line';
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at] as number;
    const isAfterCr = at > 0 && bytes[at - 1] === CR;
    if (isAfterCr !== (byte === LF)) return 'a line that does not end in CRLF';
    if ((byte < SPACE && byte !== TAB && byte !== CR && byte !== LF) || byte === DELETE)
      return 'a control character in the head';
  }
  return null;
}

/** Reads the head that lies from `start` to `end`: with the CRLF of its last line, without the empty line after it. */
export function readReplyHead(bytes: Buffer, start: number, end: number): ReplyHead | ReplyFault {
  const text = bytes.toString('latin1', start, end);
  const isAscii = ASCII_LINES.test(text);
  if (!isAscii && !LINES.test(text)) return 'a control character in the head';
  if (!STATUS_LINE.test(text)) return 'no HTTP/1.1 status line';
  // Every CR begins a CRLF here, and searching for one character is much faster than searching for two.
  let lineEnd = text.indexOf('\r');
  const headers: string[] = [];
  const fields = new FramingFields();
  for (let at = lineEnd + LINE_END_LENGTH; at < text.length; at = lineEnd + LINE_END_LENGTH) {
    lineEnd = text.indexOf('\r', at);
    const colon = text.indexOf(':', at);
    // A line that begins with a space would continue the line before it (RFC 9112 5.2). It is refused: no name contains
    // a space.
    const name = colon === -1 || colon > lineEnd ? null : lowerCaseName(text.slice(at, colon));
    if (name === null) return 'a header line without a name';
    const value = withoutBlanksAround(text, colon + 1, lineEnd);
    const fault = fields.read(name, value);
    if (fault !== null) return fault;
    headers.push(name, isAscii ? value : readUtf8(value));
  }
  const status = 100 * digitAt(text, STATUS_AT) + 10 * digitAt(text, STATUS_AT + 1) + digitAt(text, STATUS_AT + 2);
  return frame(status, headers, fields, digitAt(text, MINOR_VERSION_AT) === 1);
}

function digitAt(text: string, at: number): number {
  return text.charCodeAt(at) - ZERO;
}

/** Names in lower case, by their spelling in replies. All traffic has few names; the map is bounded. */
const lowerCaseNames = new Map<string, string>();
const NAMES_MAX = 1_000;
/** A longer name is not kept. */
const NAME_LENGTH_MAX = 64;

/** null: it is no name. */
function lowerCaseName(written: string): string | null {
  const known = lowerCaseNames.get(written);
  if (known !== undefined) return known;
  if (!TOKEN.test(written)) return null;
  if (lowerCaseNames.size >= NAMES_MAX || written.length > NAME_LENGTH_MAX) return written.toLowerCase();
  // In V8 a slice refers to the string it was cut from: keeping the slice would keep the whole head.
  const copy = Buffer.from(written, 'latin1').toString('latin1');
  const name = asPropertyName(copy.toLowerCase());
  lowerCaseNames.set(copy, name);
  return name;
}

/** The same text as V8 stores property names: V8 compares two such strings by their addresses alone. */
function asPropertyName(text: string): string {
  return Object.keys({ [text]: null })[0] ?? text;
}

/** HTTP trims spaces and tabs only; `trim` would remove other white space, too. */
function withoutBlanksAround(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/**
 * Converts a header value from another parser, with one character for each byte, to what `readReplyHead` would give.
 */
export function replyHeaderValue(found: string): string {
  const value = withoutBlanksAround(found, 0, found.length);
  return ASCII.test(value) ? value : readUtf8(value);
}

/** Decodes a value that is UTF-8. It is later written as UTF-8 again, so the client gets the bytes that came. */
function readUtf8(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

function isBlank(character: number): boolean {
  return character === SPACE || character === TAB;
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
    // Such replies have no body, whatever their headers say (RFC 9112 6.3). A server that announces one may send it all
    // the same, so its connection is not kept.
    if (chunked || (contentLength > 0 && status !== 304)) keepAlive = false;
    framing = 'none';
  }
  if (framing === 'until_close') keepAlive = false;
  return { status, headers, framing, bodyBytes: framing === 'length' ? contentLength : 0, keepAlive, keepAliveHintMs };
}
