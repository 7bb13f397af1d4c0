// Checks a request body as it arrives: its complete JSON grammar, where the control fields are, how many attachments
// there are, and the types of its tools. request-scanner.wasm does the work (source: request-scanner.as.ts); the
// dialects decide what the fields mean.

import { Buffer, isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { assert } from '../../../platform/assert.ts';
import { CONTROL_KEYS, COST_BITS, type ControlKey, controlKeyOf, writeKeyTables } from './scanned-keys.ts';

export type ScanFault =
  | 'invalid_json'
  | 'not_an_object'
  | 'duplicate_key'
  | 'letter_case'
  | 'too_deep'
  | 'invalid_utf8';
export type ValueKind = 'string' | 'number' | 'true' | 'false' | 'null' | 'object' | 'array';

/** Byte offsets in the whole body; those of a string include its quotes. */
export interface ScannedValue {
  readonly start: number;
  readonly end: number;
  readonly kind: ValueKind;
}

/** The type of a tool other than `function` and `custom`. */
export interface ScannedType {
  /** Where the string that names it begins, at its quote. */
  readonly start: number;
}

export interface ScannedRequest {
  readonly fault: ScanFault | null;
  /** The offending byte; for a body that ends too early, its length; 0 without a fault. */
  readonly faultOffset: number;
  /** The key that came twice, or that was written with other letters. */
  readonly faultKey: ControlKey | null;
  readonly attachments: number;
  /** Whether any of `COST_KEYS` is there. */
  readonly hasCostKeys: boolean;
  /** The first `TYPES_MAX` types; `typeCount` is how many there are. */
  readonly types: readonly ScannedType[];
  readonly typeCount: number;
  /** A `cache_control` asks for a time to live of an hour. */
  readonly asksForHourCache: boolean;
  /** How many of `STORED_OBJECT_KEYS` there are. */
  readonly storedObjectKeys: number;
  /** How many items of `input` refer to another item: by their type, or because they have neither a type nor a role. */
  readonly references: number;
  /** One of these items has its id or its type twice. */
  readonly hasAmbiguousReference: boolean;
  valueOf(key: ControlKey): ScannedValue | null;
}

// Addresses and numbers below are those of request-scanner.as.ts.
const SCRATCH = 8192;
const SCRATCH_BYTES = 65_536;
const SLOTS = 74_752;
const SLOT_BYTES = 1536;
const PAGE_BYTES = 65_536;
const WARM_UP_ROUNDS = 12; // a few ms, once

// Fields of a slot, in 32-bit words.
const CONSUMED = 2;
const SEEN = 6;
const FOUND_COUNT = 8;
const ATTACHMENTS = 9;
const NON_ASCII = 10;
const FAULT = 11;
const FAULT_OFFSET = 12;
const FAULT_KEY = 13;
const STORED_KEYS = 23;
const MARKS = 24;
const TYPE_COUNT = 25;
const TYPES = 26;
const TYPES_MAX = 16;
const FOUND = 90;
const FOUND_WORDS = 3;
const REFERENCES = 348;

const HOUR_CACHE_MARK = 1;
const AMBIGUOUS_REFERENCE_MARK = 2;
const STATE_START = 0;
const STATE_DONE = 7;
const STATE_FAULTY = 12;
const FAULTS = [null, 'invalid_json', 'not_an_object', 'duplicate_key', 'too_deep', 'letter_case'] as const;
const KINDS = [null, 'string', 'number', 'true', 'false', 'null', 'object', 'array'] as const;
const NO_SLOT = -1;
const NO_TYPES: readonly ScannedType[] = [];

interface ScannerModule {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  initialize(): void;
  begin(slot: number): void;
  feed(slot: number, length: number): number;
}

// TypeScript has these types only together with all of the browser's.
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** One per process. A scan holds a slot of the module's memory from `begin` until `finish` or `abandon`. */
export class RequestScanner {
  private readonly module: ScannerModule;
  private readonly freeSlots: number[] = [];
  private nextSlot = SLOTS;
  private bytes: Uint8Array;
  private words: Int32Array;

  constructor() {
    const wasm = new WebAssembly.Module(readFileSync(new URL('./request-scanner.wasm', import.meta.url)));
    // The artifact is ours and compared with its source by `npm run check`: its exports are known.
    this.module = new WebAssembly.Instance(wasm).exports as ScannerModule;
    this.module.initialize();
    this.bytes = new Uint8Array(this.module.memory.buffer);
    this.words = new Int32Array(this.module.memory.buffer);
    writeKeyTables(this.bytes);
    this.warmUp();
  }

  /** For a body that arrives in pieces: `feed` each piece, then `finish` with the whole body, or `abandon`. */
  begin(): Scan {
    return new Scan(this, this.takeSlot());
  }

  /** For a body that is complete already. */
  scan(body: Buffer): ScannedRequest {
    const scan = this.begin();
    try {
      scan.feed(body);
      return scan.finish(body);
    } finally {
      scan.abandon();
    }
  }

  /** How many scans hold a slot now. */
  get active(): number {
    return (this.nextSlot - SLOTS) / SLOT_BYTES - this.freeSlots.length;
  }

  // The methods below are only for Scan.

  takeSlot(): number {
    let slot = this.freeSlots.pop();
    if (slot === undefined) {
      slot = this.nextSlot;
      if (slot + SLOT_BYTES > this.bytes.byteLength) this.grow();
      this.nextSlot += SLOT_BYTES;
    }
    this.module.begin(slot);
    return slot;
  }

  releaseSlot(slot: number): void {
    this.freeSlots.push(slot);
  }

  feedSlot(slot: number, chunk: Uint8Array): number {
    const length = chunk.byteLength;
    if (length <= SCRATCH_BYTES) {
      this.bytes.set(chunk, SCRATCH);
      return this.module.feed(slot, length);
    }
    let state = STATE_START;
    for (let from = 0; from < length && state !== STATE_FAULTY; from += SCRATCH_BYTES) {
      const piece = chunk.subarray(from, from + SCRATCH_BYTES);
      this.bytes.set(piece, SCRATCH);
      state = this.module.feed(slot, piece.byteLength);
    }
    return state;
  }

  word(slot: number, field: number): number {
    return this.words[(slot >> 2) + field] ?? 0;
  }

  /**
   * V8 compiles code in haste first, and well in the background once it has run. Without this the first large body
   * takes 7 ms.
   */
  private warmUp(): void {
    const item =
      '{"model":["\\n \\" \\u0041 a string that is longer than sixteen bytes",-1.5e3,10,true,null,{}, []]},\n ';
    const body = Buffer.from(`{"messages":[${item.repeat(400)}0]}`);
    for (let round = 0; round < WARM_UP_ROUNDS; round++)
      assert(this.scan(body).fault === null, 'the warm-up body is refused');
  }

  /** Adds slots: more bodies are being scanned at once than ever before. Growing detaches the old views. */
  private grow(): void {
    const pages = this.bytes.byteLength / PAGE_BYTES;
    this.module.memory.grow(pages);
    this.bytes = new Uint8Array(this.module.memory.buffer);
    this.words = new Int32Array(this.module.memory.buffer);
  }
}

/** The scan of one body; after `finish` it is the result. */
export class Scan implements ScannedRequest {
  fault: ScanFault | null = null;
  faultOffset = 0;
  faultKey: ControlKey | null = null;
  attachments = 0;
  hasCostKeys = false;
  types = NO_TYPES;
  typeCount = 0;
  asksForHourCache = false;
  storedObjectKeys = 0;
  references = 0;
  hasAmbiguousReference = false;
  private readonly scanner: RequestScanner;
  private readonly found: number[] = []; // control index | kind << 8, start, end
  private slot: number;
  private state = STATE_START;

  constructor(scanner: RequestScanner, slot: number) {
    this.scanner = scanner;
    this.slot = slot;
  }

  /** Takes the next bytes of the body. False: the body is faulty, which no further byte can change. */
  feed(chunk: Uint8Array): boolean {
    assert(this.slot !== NO_SLOT, 'a scan is fed after its end');
    if (this.state === STATE_FAULTY) return false;
    if (chunk.byteLength === 0) return true;
    this.state = this.scanner.feedSlot(this.slot, chunk);
    return this.state !== STATE_FAULTY;
  }

  /** `body` is everything that was fed, in one piece (after a fault it may be anything). */
  finish(body: Buffer): ScannedRequest {
    const slot = this.slot;
    assert(slot !== NO_SLOT, 'a scan is finished twice');
    const scanner = this.scanner;
    if (this.state === STATE_DONE) {
      assert(scanner.word(slot, CONSUMED) === body.byteLength, 'a scan is finished with another body than was fed');
      const words = FOUND + scanner.word(slot, FOUND_COUNT) * FOUND_WORDS;
      for (let field = FOUND; field < words; field++) this.found.push(scanner.word(slot, field));
      this.attachments = scanner.word(slot, ATTACHMENTS);
      this.readMarks();
      // Bytes outside strings are ASCII by grammar. Only a body with other bytes is checked a second time.
      if (scanner.word(slot, NON_ASCII) !== 0 && !isUtf8(body)) {
        this.fault = 'invalid_utf8';
        this.faultOffset = invalidUtf8Offset(body);
      }
    } else if (this.state === STATE_FAULTY) {
      this.fault = FAULTS[scanner.word(slot, FAULT)] ?? 'invalid_json';
      this.faultOffset = scanner.word(slot, FAULT_OFFSET);
      if (this.fault === 'duplicate_key' || this.fault === 'letter_case')
        this.faultKey = controlKeyOf(scanner.word(slot, FAULT_KEY));
    } else {
      this.fault = 'invalid_json';
      this.faultOffset = body.byteLength;
    }
    this.end();
    return this;
  }

  /** Reads the marks of what bears on the price or refers to other requests. */
  private readMarks(): void {
    const scanner = this.scanner;
    const slot = this.slot;
    const [lowBits = 0, highBits = 0] = COST_BITS;
    this.hasCostKeys = (scanner.word(slot, SEEN) & lowBits) !== 0 || (scanner.word(slot, SEEN + 1) & highBits) !== 0;
    this.storedObjectKeys = scanner.word(slot, STORED_KEYS);
    const marks = scanner.word(slot, MARKS);
    this.asksForHourCache = (marks & HOUR_CACHE_MARK) !== 0;
    this.references = scanner.word(slot, REFERENCES);
    this.hasAmbiguousReference = (marks & AMBIGUOUS_REFERENCE_MARK) !== 0;
    this.typeCount = scanner.word(slot, TYPE_COUNT);
    if (this.typeCount > 0) {
      this.types = Array.from({ length: Math.min(this.typeCount, TYPES_MAX) }, (_, row) => ({
        start: scanner.word(slot, TYPES + row * 2 + 1),
      }));
    }
  }

  /** For a request that was aborted before its last byte. Harmless after `finish`. */
  abandon(): void {
    if (this.slot !== NO_SLOT) this.end();
  }

  valueOf(key: ControlKey): ScannedValue | null {
    const found = this.found;
    for (let row = 0; row < found.length; row += FOUND_WORDS) {
      const head = found[row] ?? 0;
      if (CONTROL_KEYS[head & 0xff] !== key) continue;
      return { start: found[row + 1] ?? 0, end: found[row + 2] ?? 0, kind: KINDS[head >> 8] ?? 'null' };
    }
    return null;
  }

  private end(): void {
    this.scanner.releaseSlot(this.slot);
    this.slot = NO_SLOT;
  }
}

/** The text of a JSON string value. */
export function readString(body: Buffer, value: ScannedValue): string {
  const start = value.start + 1;
  const end = value.end - 1;
  if (end - start > 64) {
    const text = body.toString('utf8', start, end);
    return text.includes('\\') ? parseString(body, value) : text;
  }
  for (let at = start; at < end; at++) {
    const byte = body[at] ?? 0;
    if (byte >= 0x80 || byte === 0x5c) return parseString(body, value);
  }
  return body.toString('latin1', start, end);
}

/**
 * The number, if it is written as a non-negative safe integer, else null: `1.0`, `1e3` and `-1` are numbers but null
 * here.
 */
export function readInteger(body: Buffer, value: ScannedValue): number | null {
  if (value.kind !== 'number' || value.end - value.start > 16) return null;
  let integer = 0;
  for (let at = value.start; at < value.end; at++) {
    const digit = (body[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return null;
    integer = integer * 10 + digit;
  }
  return Number.isSafeInteger(integer) ? integer : null;
}

function parseString(body: Buffer, value: ScannedValue): string {
  const parsed: unknown = JSON.parse(body.toString('utf8', value.start, value.end));
  assert(typeof parsed === 'string', 'a value read as a string is none');
  return parsed;
}

/**
 * Where the first invalid sequence begins. The search halves the range that contains it, so it reads about twice the
 * body in all.
 */
function invalidUtf8Offset(body: Buffer): number {
  let valid = 0;
  let end = body.byteLength;
  while (end - valid > 16) {
    let middle = valid + ((end - valid) >> 1);
    for (let back = 0; back < 3 && ((body[middle] ?? 0) & 0xc0) === 0x80; back++) middle--; // not inside a sequence
    if (isUtf8(body.subarray(valid, middle))) valid = middle;
    else end = middle;
  }
  for (let length = 1; length <= 4; length++) {
    if (valid + length > body.byteLength || !isUtf8(body.subarray(valid, valid + length))) continue;
    valid += length;
    length = 0;
  }
  return valid;
}
