// Finds where the control fields of a multipart/form-data body are (RFC 2046, RFC 7578), so that the model, and nothing
// else, can be replaced.
//
// The scan is strict where parsers differ. The provider reads the same bytes with its own parser, and a form that it
// could read differently would be a way to another model or more images than were paid for. So the bytes `--boundary`
// may occur only in delimiters, a delimiter has no padding, lines end in CRLF, and a name has one spelling and one
// place. No client library writes what is refused here.

import { Buffer, isUtf8 } from 'node:buffer';
import type { TextPart } from '../../domain/guardrails/screen-whole.ts';
import { readBoundary, readPartHeaders } from '../../platform/bytes/multipart-headers.ts';

/** Parts whose values decide the model, the price or the format of the reply. */
export const FORM_FIELDS = ['model', 'n', 'stream'] as const;
export type FormField = (typeof FORM_FIELDS)[number];

/** Byte offsets in the body. */
export interface PartValue {
  readonly start: number;
  readonly end: number;
}

export interface ScannedForm {
  readonly boundary: string;
  readonly parts: number;
  /** Parts named `image`, `image[]` or `image[0]`. */
  readonly images: number;
  readonly masks: number;
  /** Parts that are neither image nor mask, files among them: what guardrails screen. */
  readonly texts: readonly TextPart[];
  /** How many of `texts` are encoded, so that nobody here can read them. */
  readonly encodedTexts: number;
  valueOf(field: FormField): PartValue | null;
}

export type FormFaultKind =
  /** The Content-Type names no boundary, or none that RFC 2046 allows. */
  | 'missing_boundary'
  | 'malformed'
  /** The closing delimiter is missing. */
  | 'unfinished'
  /** A control field came twice. */
  | 'duplicate_part'
  /** A control field's name was written with other letters: capitals, or letters that some parsers fold to these. */
  | 'letter_case'
  /** A control field came as a file, as a list or encoded. */
  | 'not_a_plain_part'
  | 'too_many_parts'
  | 'headers_too_large';

export interface FormFault {
  readonly fault: FormFaultKind;
  /** Where the fault begins; for an unfinished form, its length. */
  readonly offset: number;
  readonly field: FormField | null;
}

const PARTS_MAX = 256;
/** Enough to find part 257, which is refused: the border before it and the one after it. */
const BORDERS_MAX = PARTS_MAX + 2;
/** How much of an epilogue is searched. Clients write none, or a line end. */
const EPILOGUE_BYTES_MAX = 4_096;
const EMPTY_LINES = ['\r\n\r\n', '\n\n', '\r\r'].map((text) => Buffer.from(text));
const PART_HEADER_BYTES_MAX = 8_192;
/** Bounds all parts' headers together: they are read byte by byte, everything else is searched natively. */
const ALL_HEADER_BYTES_MAX = 131_072;

const HEADERS_END = Buffer.from('\r\n\r\n');
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const DASH = 0x2d;

/** Scans a whole form. `contentType` is the request's header, which names the boundary. */
export function scanMultipart(body: Buffer, contentType: string): ScannedForm | FormFault {
  return new MultipartScan(contentType).finish(body);
}

/**
 * The scan of a form that comes in pieces. Borders are searched for as the pieces come, so that little is left to do at
 * once when the form is complete, however long it is.
 */
export class MultipartScan {
  private readonly boundary: string | null;
  private readonly dashBoundary: Buffer;
  /** The places of `--boundary`; only the first ones if there are more than a form may have. */
  private readonly borders: number[] = [];
  private searched = 0;

  constructor(contentType: string) {
    this.boundary = readBoundary(contentType);
    this.dashBoundary = Buffer.from(`--${this.boundary ?? ''}`, 'latin1');
  }

  /** `body`: all bytes that have come so far. */
  feed(body: Buffer): void {
    const { dashBoundary, borders } = this;
    if (this.boundary === null) return;
    while (borders.length < BORDERS_MAX) {
      const at = body.indexOf(dashBoundary, this.searched);
      if (at === -1) {
        this.searched = Math.max(this.searched, body.length - dashBoundary.length + 1);
        return;
      }
      borders.push(at);
      this.searched = at + dashBoundary.length;
    }
  }

  finish(body: Buffer): ScannedForm | FormFault {
    const { boundary, dashBoundary, borders } = this;
    if (boundary === null) return { fault: 'missing_boundary', offset: 0, field: null };
    this.feed(body);
    return new FormScan(body, { boundary, dashBoundary, borders }).run();
  }
}

/** Whether `replacement` can stand as a part's value without becoming part of the form's framing. */
export function fitsForm(form: ScannedForm, replacement: Buffer): boolean {
  return (
    !replacement.includes(`--${form.boundary}`) &&
    !replacement.includes(CARRIAGE_RETURN) &&
    !replacement.includes(LINE_FEED)
  );
}

/** A part's value as text; null when it is no UTF-8 or longer than `bytesMax`. */
export function readPartText(body: Buffer, value: PartValue, bytesMax: number): string | null {
  if (value.end - value.start > bytesMax) return null;
  const bytes = body.subarray(value.start, value.end);
  return isUtf8(bytes) ? bytes.toString('utf8') : null;
}

type Delimiter = { readonly start: number; readonly end: number; readonly closes: boolean };

interface Borders {
  readonly boundary: string;
  readonly dashBoundary: Buffer;
  readonly borders: readonly number[];
}

class FormScan implements ScannedForm {
  readonly boundary: string;
  parts = 0;
  images = 0;
  masks = 0;
  encodedTexts = 0;
  readonly texts: TextPart[] = [];
  private readonly body: Buffer;
  private readonly dashBoundary: Buffer;
  private readonly borders: readonly number[];
  private bordersPassed = 0;
  private readonly values = new Map<FormField, PartValue>();
  private headerBytes = 0;

  constructor(body: Buffer, { boundary, dashBoundary, borders }: Borders) {
    this.body = body;
    this.boundary = boundary;
    this.dashBoundary = dashBoundary;
    this.borders = borders;
  }

  valueOf(field: FormField): PartValue | null {
    return this.values.get(field) ?? null;
  }

  run(): ScannedForm | FormFault {
    // The bytes before the first delimiter are a preamble, which is ignored (RFC 2046, 5.1.1).
    let delimiter = this.nextDelimiter(0);
    while (!('fault' in delimiter) && !delimiter.closes) {
      const next = this.nextDelimiter(delimiter.end);
      if ('fault' in next) return next;
      const fault = this.takePart(delimiter.end, next.start);
      if (fault !== null) return fault;
      delimiter = next;
    }
    if ('fault' in delimiter) return delimiter;
    const another = this.partInEpilogue(delimiter.end);
    return another === -1 ? this : malformed(another);
  }

  /**
   * Where a parser that reads on after the last delimiter could find another part; -1: nowhere. That is at a delimiter,
   * at an empty line (between a part's headers and its value), or after the bytes that are searched here. Any other
   * epilogue is ignored (RFC 2046, 5.1.1).
   */
  private partInEpilogue(end: number): number {
    const start = isLineEnd(this.body, end) ? end + 2 : end;
    const epilogue = this.body.subarray(start, start + EPILOGUE_BYTES_MAX);
    const found = [this.dashBoundary, ...EMPTY_LINES].map((bytes) => epilogue.indexOf(bytes)).find((at) => at !== -1);
    if (found !== undefined) return start + found;
    return start + epilogue.length < this.body.length ? start + epilogue.length : -1;
  }

  /** The next delimiter, its line ends included. The line end before it begins at `earliest` or later. */
  private nextDelimiter(earliest: number): Delimiter | FormFault {
    const body = this.body;
    const at = this.borders[this.bordersPassed++];
    if (at === undefined) return { fault: 'unfinished', offset: body.length, field: null };
    const opensBody = at === 0;
    const ownsLine = at - 2 >= earliest && body[at - 2] === CARRIAGE_RETURN && body[at - 1] === LINE_FEED;
    if (!opensBody && !ownsLine) return malformed(at);
    const start = opensBody ? 0 : at - 2;
    const after = at + this.dashBoundary.length;
    if (isLineEnd(body, after)) return { start, end: after + 2, closes: false };
    const closes = body[after] === DASH && body[after + 1] === DASH;
    if (!closes)
      return after >= body.length ? { fault: 'unfinished', offset: body.length, field: null } : malformed(at);
    if (after + 2 === body.length || isLineEnd(body, after + 2)) return { start, end: after + 2, closes };
    return malformed(at);
  }

  /** Takes the part between the line of its delimiter and the line end before the next delimiter. */
  private takePart(start: number, end: number): FormFault | null {
    this.parts += 1;
    if (this.parts > PARTS_MAX) return { fault: 'too_many_parts', offset: start, field: null };
    const limit = Math.min(end, start + PART_HEADER_BYTES_MAX + HEADERS_END.length);
    const headersLength = this.body.subarray(start, limit).indexOf(HEADERS_END);
    if (headersLength === -1)
      return limit < end ? { fault: 'headers_too_large', offset: start, field: null } : malformed(start);
    this.headerBytes += headersLength;
    if (this.headerBytes > ALL_HEADER_BYTES_MAX) return { fault: 'headers_too_large', offset: start, field: null };
    const headers = readPartHeaders(this.body.toString('latin1', start, start + headersLength));
    if (headers === null) return malformed(start);

    const valueStart = start + headersLength + HEADERS_END.length;
    const listAt = headers.name.indexOf('[');
    const base = listAt === -1 ? headers.name : headers.name.slice(0, listAt);
    const isPicture = base === 'image' || base === 'mask';
    if (base === 'image') this.images += 1;
    else if (base === 'mask') this.masks += 1;
    if (!isPicture || !(headers.isFile || headers.isEncoded)) {
      this.texts.push({ name: headers.name, start: valueStart, end });
      if (headers.isEncoded) this.encodedTexts += 1;
    }
    const folded = foldName(base);
    const field = FORM_FIELDS.find((candidate) => candidate === folded);
    if (field === undefined) return null;
    if (field !== base) return { fault: 'letter_case', offset: start, field };
    if (this.values.has(field)) return { fault: 'duplicate_part', offset: start, field };
    if (listAt !== -1 || headers.isFile || headers.isEncoded)
      return { fault: 'not_a_plain_part', offset: start, field };
    this.values.set(field, { start: valueStart, end });
    return null;
  }
}

/**
 * A name as a parser reads it that ignores letter case; `name` is bytes as latin1. The four letters are the ones that
 * request-scanner.as.ts folds.
 */
function foldName(name: string): string {
  const text = Buffer.from(name, 'latin1').toString('utf8');
  return text
    .replaceAll('\u017f', 's')
    .replaceAll('\u212a', 'k')
    .replaceAll('\u0130', 'i')
    .replaceAll('\u0131', 'i')
    .toLowerCase();
}

function isLineEnd(body: Buffer, at: number): boolean {
  return body[at] === CARRIAGE_RETURN && body[at + 1] === LINE_FEED;
}

function malformed(offset: number): FormFault {
  return { fault: 'malformed', offset, field: null };
}
