// Reads the head of an HTTP/1.1 reply (RFC 9112 4 to 6). Strict: what follows a reply on a kept connection is taken for the next one, so whatever
// could be framed in two ways is a fault, never a guess.

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

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const CONTENT_LENGTH = /^\d{1,15}$/;
const KEEP_ALIVE_TIMEOUT = /(?:^|,)[\t ]*timeout=(\d{1,6})/i;
const STATUS_LINE_BYTES_MIN = 'HTTP/1.1 200'.length;
const SPACE = 0x20;
const TAB = 0x09;
const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const DELETE = 0x7f;

/** What a header has to say about framing. */
type FramingField = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';
const FRAMING_FIELDS: readonly string[] = ['content-length', 'transfer-encoding', 'connection', 'keep-alive'] satisfies FramingField[];

interface HeaderName {
  readonly written: string;
  readonly lowerCase: string;
  readonly framing: FramingField | null;
}

/** Names as they were written: there are few in all traffic, and to look one up is cheaper than to check it. Bounded. */
const knownNames = new Map<string, HeaderName>();
const KNOWN_NAMES_MAX = 1_000;
/** The first ones of each length: found without a string for the name. */
const commonNames: HeaderName[][] = Array.from({ length: 40 }, () => []);
const COMMON_OF_LENGTH_MAX = 6;

/** The name that stands from `start` to `end`; null where that is no name. */
function headerName(text: string, start: number, end: number): HeaderName | null {
  const common = commonNames[end - start];
  if (common !== undefined) for (const name of common) if (text.startsWith(name.written, start)) return name;
  const written = text.slice(start, end);
  const known = knownNames.get(written);
  if (known !== undefined) return known;
  if (!TOKEN.test(written)) return null;
  const lowerCase = written.toLowerCase();
  const name = { written, lowerCase, framing: FRAMING_FIELDS.includes(lowerCase) ? (lowerCase as FramingField) : null };
  if (knownNames.size < KNOWN_NAMES_MAX) knownNames.set(written, name);
  if (common !== undefined && common.length < COMMON_OF_LENGTH_MAX) common.push(name);
  return name;
}

/** What the lines of a head say about its framing. */
class FramingFields {
  contentLength = -1;
  chunked = false;
  closes = false;
  keeps = false;
  keepAliveHintMs: number | null = null;

  /** A fault, or null. */
  read(field: FramingField, value: string): ReplyFault | null {
    switch (field) {
      case 'content-length':
        // RFC 9112 6.3: a list of equal lengths may be taken for one of them; no provider has a reason to send it.
        if (this.contentLength !== -1) return 'content-length twice';
        if (!CONTENT_LENGTH.test(value)) return 'a content-length that is no number';
        this.contentLength = Number(value);
        return null;
      case 'transfer-encoding':
        // We never said that we take another coding (RFC 9112 7.4), and could not relay what lies in it.
        if (this.chunked || value.toLowerCase() !== 'chunked') return 'a transfer-encoding other than chunked';
        this.chunked = true;
        return null;
      case 'connection':
        this.readConnection(value);
        return null;
      case 'keep-alive': {
        const timeout = KEEP_ALIVE_TIMEOUT.exec(value)?.[1];
        if (timeout !== undefined) this.keepAliveHintMs = Number(timeout) * 1_000;
        return null;
      }
    }
  }

  private readConnection(value: string): void {
    for (const option of value.toLowerCase().split(',')) {
      const trimmed = option.trim();
      if (trimmed === 'close') this.closes = true;
      else if (trimmed === 'keep-alive') this.keeps = true;
    }
  }
}

/** Where lines end, and where the first colon of each is (-1: there is none), alternating, counted from the head's first byte. One for all heads. */
const lines: number[] = [];

/** Fills `lines`. False when there is what may not be in a head but at the end of its lines: control characters, a bare CR, a bare LF. */
function findLines(bytes: Uint8Array, start: number, end: number): boolean {
  lines.length = 0;
  let colon = -1;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === COLON) {
      if (colon === -1) colon = at - start;
    } else if (byte === CR) {
      if (at + 1 === end || bytes[at + 1] !== LF) return false;
      lines.push(at - start, colon);
      colon = -1;
      at += 1;
    } else if (byte === DELETE || (byte < SPACE && byte !== TAB)) {
      return false;
    }
  }
  return true;
}

/** The head lies from `start` to `end`, with the CRLF of its last line and without the empty line behind it. */
export function readReplyHead(bytes: Buffer, start: number, end: number): ReplyHead | ReplyFault {
  if (!findLines(bytes, start, end)) return 'a control character in the head';
  // One string for the whole head: names and values are slices of it.
  const text = bytes.toString('latin1', start, end);
  const status = readStatusLine(text, lines[0] as number);
  if (status === null) return 'no HTTP/1.1 status line';
  const headers: string[] = [];
  const fields = new FramingFields();
  for (let line = 2; line < lines.length; line += 2) {
    const lineStart = (lines[line - 2] as number) + 2;
    const colon = lines[line + 1] as number;
    // A line that begins with a space would be the rest of the one before (RFC 9112 5.2): no token, so no name.
    const name = colon === -1 ? null : headerName(text, lineStart, colon);
    if (name === null) return 'a header line without a name';
    const value = trimmedSlice(text, colon + 1, lines[line] as number);
    const fault = name.framing === null ? null : fields.read(name.framing, value);
    if (fault !== null) return fault;
    headers.push(name.lowerCase, value);
  }
  return frame(status, headers, fields, text.charCodeAt(7) === 0x31);
}

/** RFC 9112 4: the space after the code may be missing where the reason is. */
function readStatusLine(text: string, end: number): number | null {
  if (end < STATUS_LINE_BYTES_MIN || !(text.startsWith('HTTP/1.1 ') || text.startsWith('HTTP/1.0 '))) return null;
  if (end > STATUS_LINE_BYTES_MIN && text.charCodeAt(STATUS_LINE_BYTES_MIN) !== SPACE) return null;
  let status = 0;
  for (let index = 9; index < 12; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit < 0 || digit > 9) return null;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : null;
}

function trimmedSlice(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function frame(status: number, headers: ReplyHeaders, fields: FramingFields, isHttp11: boolean): ReplyHead | ReplyFault {
  const { contentLength, chunked, closes, keepAliveHintMs } = fields;
  if (chunked && contentLength !== -1) return 'both content-length and transfer-encoding';
  // RFC 9112 6.1: the framing of such a reply is faulty.
  if (chunked && !isHttp11) return 'transfer-encoding in HTTP/1.0';
  let keepAlive = isHttp11 && !closes;
  let framing: Framing = chunked ? 'chunked' : contentLength === -1 ? 'until_close' : contentLength === 0 ? 'none' : 'length';
  if (status < 200 || status === 204 || status === 304) {
    // They have no body, whatever they say (RFC 9112 6.3); one that says it has may send it all the same.
    if (chunked || (contentLength > 0 && status !== 304)) keepAlive = false;
    framing = 'none';
  }
  if (framing === 'until_close') keepAlive = false;
  return { status, headers, framing, bodyBytes: framing === 'length' ? contentLength : 0, keepAlive, keepAliveHintMs };
}
