// The scan itself, in AssemblyScript: a resumable, complete RFC 8259 check of one JSON object that notes where the
// control fields lie. request-scanner.ts owns the interface, and scanned-keys.ts writes the key tables;
// test/check/build-wasm.ts makes the .wasm from this.
//
//   START -> KEY_OR_END -> COLON -> VALUE -> AFTER -> KEY -> ... -> DONE        any chunk may end in any state, also
//              `{`         IN_KEY    IN_STRING IN_NUMBER IN_LITERAL              in a token, an escape, four hex digits
//
// All memory is laid out by hand below and nothing is ever allocated, so the module carries no runtime. Inside strings
// 64 bytes are judged at a time; that is where nearly all bytes of a real request are. Everything else is a plain state
// machine.
//
// The parts of this file, in this order, each under a heading line:
//   Memory          where everything lies: tables, a piece of input, and a slot for each scan under way
//   Vocabulary      the numbers of states, faults, keys' roles and kinds of values
//   Entry           initialize, begin and feed, which request-scanner.ts calls
//   State machine   what may come next between two tokens
//   Tokens          strings, numbers and literals, from any byte on
//   Keys            which keys count, and what their values say: lists of tools and input, cache lifetimes, references

// --- Memory ----------------------------------------------------------------------------------------------------------
const CLASSES: usize = 1024; // 256 bytes: how a value begins with this byte (CLASS_*)
const HEX: usize = 1280; // 256 bytes: value of a hex digit, 0xff for any other byte
const ESCAPES: usize = 1536; // 256 bytes: what `\x` decodes to, 0 when it is no escape, 1 for `u`
const MASKS: usize = 1792; // 32 bytes 0xff, 32 bytes 0: masks of every key length
const DECODED: usize = 1856; // 64 bytes: a key after its escapes are resolved
const TOP_KEYS: usize = 2048; // key table for the outermost object
// key table for every other object, each byte of a key with the bit that tells letter case set
const NESTED_KEYS: usize = 4608;
const SCRATCH: usize = 8192; // one piece of input
const SCRATCH_BYTES: i32 = 65536;
const SLOTS: usize = 74752; // SCRATCH + SCRATCH_BYTES + room for the sentinel and for reads past the end
const SLOT_BYTES: usize = 1536;

// A key table, written by scanned-keys.ts: keys of one length are neighbours.
const TABLE_META: usize = 80; // before it: for each length 0..32 two bytes, first and one past last key
const TABLE_KEYS: usize = 224; // before it: for each key two bytes, control index or role (255 none) and flags (FLAG_*)
const KEY_BYTES_MAX: i32 = 32; // each key zero-padded to this

// A slot: the whole state of one scan between two chunks.
const STATE: usize = 0;
const DEPTH: usize = 4;
const CONSUMED: usize = 8;
const PENDING_KEY: usize = 12; // control index whose value comes next, -1 none
const VALUE_START: usize = 16;
const VALUE_KIND: usize = 20;
const SEEN: usize = 24; // 64 bits, one per control key
const FOUND_COUNT: usize = 32;
const ATTACHMENTS: usize = 36;
const NON_ASCII: usize = 40;
const FAULT: usize = 44;
const FAULT_OFFSET: usize = 48;
const FAULT_KEY: usize = 52;
const TOKEN: usize = 56; // where inside a token the chunk ended
const LITERAL: usize = 60; // the bytes of the literal still to come, first one lowest
const KEY_START: usize = 60; // of a key or a wanted string cut by a chunk end, which is never inside a literal
// bytes kept of a key or a wanted string cut by a chunk end, -1 when they are too many to match
const KEY_RAW_LENGTH: usize = 64;
const WANTED: usize = 68; // what the next value is read for (WANT_*)
const LIST: usize = 72; // the list that is the value of the control key under way (LIST_*)
const IN_ITEM: usize = 76; // 1 inside an object that is an item of such a list
const ITEM_NAMED: usize = 80; // 1 once that item has a role or a type
const ITEM_TOOLS: usize = 84; // 1 while the item's member under way is named tools
const CACHE_DEPTH: usize = 88; // depth of the members of the last cache_control, 0 once its object is over
const STORED_KEYS: usize = 92; // keys that may name an object which a provider stores
const MARKS: usize = 96; // MARK_*
const TYPE_COUNT: usize = 100;
const TYPES: usize = 104; // up to 16 times: WANT_TOOL_TYPE, start of the value
const TYPES_MAX: i32 = 16;
const KEY_RAW: usize = 232; // 128 bytes
const KEY_RAW_MAX: i32 = 128; // 21 letters, each as \u00XX, are 126
const FOUND: usize = 360; // up to 64 times: control index | kind << 8, start, end
const STACK: usize = 1128; // one byte a level: the byte that closes it
const DEPTH_MAX: i32 = 256;
const REFERENCES: usize = 1392; // items of `input` that only refer to another
const ITEM_MARKS: usize = 1396; // ITEM_* of the item under way

// --- Vocabulary, shared with request-scanner.ts ----------------------------------------------------------------------
const START: i32 = 0;
const KEY_OR_END: i32 = 1;
const KEY: i32 = 2;
const COLON: i32 = 3;
const VALUE_OR_END: i32 = 4;
const VALUE: i32 = 5;
const AFTER: i32 = 6;
const DONE: i32 = 7;
const IN_KEY: i32 = 8;
const IN_STRING: i32 = 9;
const IN_NUMBER: i32 = 10;
const IN_LITERAL: i32 = 11;
const FAULTY: i32 = 12;

const INVALID_JSON: i32 = 1;
const NOT_AN_OBJECT: i32 = 2;
const DUPLICATE_KEY: i32 = 3;
const TOO_DEEP: i32 = 4;
const LETTER_CASE: i32 = 5;

// Flags of a key in its table, and the roles that keys of nested objects have.
const FLAG_ATTACHMENT: u32 = 1;
const FLAG_STORED: u32 = 2;
const FLAG_CACHE_CONTROL: u32 = 4;
const FLAG_TOOLS: u32 = 8;
const FLAG_INPUT: u32 = 16;
const ROLE_TYPE: u32 = 1;
const ROLE_ROLE: u32 = 2;
const ROLE_TOOLS: u32 = 3;
const ROLE_TTL: u32 = 4;
const ROLE_ID: u32 = 5;

const LIST_NONE: i32 = 0;
const LIST_TOOLS: i32 = 1;
const LIST_INPUT: i32 = 2;

const WANT_NOTHING: i32 = 0;
const WANT_TOOL_TYPE: i32 = 1;
const WANT_ITEM_TYPE: i32 = 2;
const WANT_TTL: i32 = 3;

const MARK_HOUR_CACHE: u32 = 1;
const MARK_AMBIGUOUS_REFERENCE: u32 = 2; // a reference has its id or its type twice

const ITEM_REFERS: u32 = 1;
const ITEM_HAS_ID: u32 = 2;
const ITEM_HAS_TYPE: u32 = 4;
const ITEM_AMBIGUOUS: u32 = 8;

const CLASS_NONE: u8 = 0;
const CLASS_STRING: u8 = 1;
const CLASS_NUMBER: u8 = 2;
const CLASS_TRUE: u8 = 3;
const CLASS_FALSE: u8 = 4;
const CLASS_NULL: u8 = 5;
const CLASS_OBJECT: u8 = 6;
const CLASS_ARRAY: u8 = 7;
const CLASS_ARRAY_END: u8 = 8;
const CLASS_SPACE: u8 = 9;

// States of a number's scan: what was read last.
const NUMBER_MINUS: i32 = 0;
const NUMBER_ZERO: i32 = 1;
const NUMBER_INTEGER: i32 = 2;
const NUMBER_POINT: i32 = 3;
const NUMBER_FRACTION: i32 = 4;
const NUMBER_E: i32 = 5;
const NUMBER_SIGN: i32 = 6;
const NUMBER_EXPONENT: i32 = 7;

// States of a string's scan: nothing special, after a backslash, or 1 to 4 hex digits still due.
const STRING_PLAIN: i32 = 0;
const STRING_ESCAPE: i32 = 1;
const STRING_HEX: i32 = 1; // plus the digits due

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;

// Further results of the token functions, beside the position that they return.
let tokenState: i32 = 0;
let tokenEscaped: bool = false;
let nonAscii: u32 = 0;
let faultAt: usize = 0;
/** What the next value is read for. Between two chunks the slot keeps it. */
let wanted: i32 = WANT_NOTHING;
/** The key just decoded has a letter outside ASCII that some parsers take for an ASCII one. */
let decodedFolds: bool = false;

// --- Entry -----------------------------------------------------------------------------------------------------------
export function initialize(): void {
  memory.fill(HEX, 0xff, 256);
  for (let digit: u32 = 0; digit < 10; digit++) {
    store<u8>(CLASSES + 0x30 + digit, CLASS_NUMBER);
    store<u8>(HEX + 0x30 + digit, <u8>digit);
  }
  for (let digit: u32 = 10; digit < 16; digit++) {
    store<u8>(HEX + 0x41 - 10 + digit, <u8>digit);
    store<u8>(HEX + 0x61 - 10 + digit, <u8>digit);
  }
  store<u8>(CLASSES + 0x20, CLASS_SPACE);
  store<u8>(CLASSES + 0x09, CLASS_SPACE);
  store<u8>(CLASSES + 0x0a, CLASS_SPACE);
  store<u8>(CLASSES + 0x0d, CLASS_SPACE);
  store<u8>(CLASSES + 0x2d, CLASS_NUMBER);
  store<u8>(CLASSES + 0x22, CLASS_STRING);
  store<u8>(CLASSES + 0x74, CLASS_TRUE);
  store<u8>(CLASSES + 0x66, CLASS_FALSE);
  store<u8>(CLASSES + 0x6e, CLASS_NULL);
  store<u8>(CLASSES + 0x7b, CLASS_OBJECT);
  store<u8>(CLASSES + 0x5b, CLASS_ARRAY);
  store<u8>(CLASSES + 0x5d, CLASS_ARRAY_END);
  store<u8>(ESCAPES + 0x22, 0x22);
  store<u8>(ESCAPES + 0x2f, 0x2f);
  store<u8>(ESCAPES + 0x5c, 0x5c);
  store<u8>(ESCAPES + 0x62, 0x08);
  store<u8>(ESCAPES + 0x66, 0x0c);
  store<u8>(ESCAPES + 0x6e, 0x0a);
  store<u8>(ESCAPES + 0x72, 0x0d);
  store<u8>(ESCAPES + 0x74, 0x09);
  store<u8>(ESCAPES + 0x75, 1);
  memory.fill(MASKS, 0xff, 32);
}

export function begin(slot: usize): void {
  memory.fill(slot, 0, KEY_RAW);
  store<i32>(slot, 0, REFERENCES);
  store<i32>(slot, -1, PENDING_KEY);
  store<u8>(slot, 0, STACK);
}

/** Scans the `length` bytes at SCRATCH; returns the state reached. */
export function feed(slot: usize, length: i32): i32 {
  let state = load<i32>(slot, STATE);
  if (state == FAULTY) return FAULTY;
  const limit = SCRATCH + <usize>length;
  const consumed = load<i32>(slot, CONSUMED);
  // Quotes after the end: every loop that looks for the end of a token stops there without asking for the limit on each
  // byte.
  const sentinel = i8x16.splat(0x22);
  v128.store(limit, sentinel);
  v128.store(limit, sentinel, 16);
  v128.store(limit, sentinel, 32);
  v128.store(limit, sentinel, 48);
  v128.store(limit, sentinel, 64);
  nonAscii = load<u32>(slot, NON_ASCII);
  wanted = load<i32>(slot, WANTED);

  const origin = consumed - <i32>SCRATCH;
  let at: usize = SCRATCH;
  if (state >= IN_KEY) {
    at = resumeToken(slot, state, limit, origin);
    state = load<i32>(slot, STATE);
  }
  if (state < IN_KEY) state = scan(slot, state, at, limit, origin);
  store<i32>(slot, state, STATE);
  store<i32>(slot, consumed + length, CONSUMED);
  store<u32>(slot, nonAscii, NON_ASCII);
  store<i32>(slot, wanted, WANTED);
  return state;
}

// --- The state machine between tokens --------------------------------------------------------------------------------
// Each case falls into the next one when its successor byte is already here, which is nearly always; a chunk end or
// white space goes round the loop instead. `closer` is the byte that ends the innermost container.
function scan(slot: usize, entryState: i32, from: usize, limit: usize, origin: i32): i32 {
  let state = entryState;
  let at = from;
  let depth = load<i32>(slot, DEPTH);
  let closer: u32 = load<u8>(slot + STACK + <usize>depth);
  while (at < limit) {
    let byte: u32 = load<u8>(at);
    if (byte <= 0x20) {
      while (load<u8>(CLASSES + byte) == CLASS_SPACE) byte = load<u8>(++at);
      if (at >= limit) break;
      // Any other control character is what no state expects.
    }
    switch (state) {
      case KEY_OR_END:
        if (byte == 0x7d) {
          at++;
          depth--;
          closer = load<u8>(slot + STACK + <usize>depth);
          if (depth <= 2) endShallow(slot, depth, <i32>at + origin, 0x7d);
          state = depth == 0 ? DONE : AFTER;
          continue;
        }
      // falls through
      case KEY: {
        if (byte != QUOTE) return fail(slot, INVALID_JSON, <i32>at + origin);
        const end = scanString(at + 1, limit);
        if (end == 0) return fail(slot, INVALID_JSON, <i32>faultAt + origin);
        if (end >= limit) {
          store<i32>(slot, <i32>at + origin, KEY_START);
          store<i32>(slot, 0, KEY_RAW_LENGTH);
          keepKeyPart(slot, at + 1, limit);
          return leave(slot, IN_KEY, depth);
        }
        const fault = noteKey(slot, at + 1, <i32>(end - at - 1), tokenEscaped, depth);
        if (fault != 0) return fail(slot, fault, <i32>at + origin);
        at = end + 1;
        byte = load<u8>(at);
        if (byte != 0x3a || at >= limit) {
          state = COLON;
          continue;
        }
      }
      // falls through
      case COLON:
        if (byte != 0x3a) return fail(slot, INVALID_JSON, <i32>at + origin);
        at++;
        byte = load<u8>(at);
        if (byte == 0x20) byte = load<u8>(++at);
        state = VALUE;
        if (byte <= 0x20 || at >= limit) continue;
      // falls through
      case VALUE_OR_END:
      case VALUE: {
        const kind = load<u8>(CLASSES + byte);
        if (depth == 1) startTopLevelValue(slot, <i32>at + origin, kind);
        const want = wanted;
        wanted = WANT_NOTHING;
        if (kind == CLASS_STRING) {
          const start = at;
          at = scanString(at + 1, limit);
          if (at >= limit) {
            if (want != WANT_NOTHING) {
              wanted = want;
              store<i32>(slot, <i32>start + origin, KEY_START);
              store<i32>(slot, 0, KEY_RAW_LENGTH);
              keepKeyPart(slot, start + 1, limit);
            }
            return leave(slot, IN_STRING, depth);
          }
          if (at == 0) return fail(slot, INVALID_JSON, <i32>faultAt + origin);
          if (want != WANT_NOTHING) {
            noteValue(slot, want, start + 1, <i32>(at - start - 1), tokenEscaped, <i32>start + origin);
          }
          at++;
        } else if (kind >= CLASS_OBJECT) {
          if (kind >= CLASS_ARRAY_END) {
            if (state != VALUE_OR_END) return fail(slot, INVALID_JSON, <i32>at + origin);
            at++;
            depth--;
            closer = load<u8>(slot + STACK + <usize>depth);
            if (depth <= 2) endShallow(slot, depth, <i32>at + origin, 0x5d);
            state = AFTER;
            continue;
          }
          if (depth == DEPTH_MAX) return fail(slot, TOO_DEEP, <i32>at + origin);
          at++;
          depth++;
          closer = byte + 2; // `}` and `]` both stand two after their opener
          store<u8>(slot + STACK + <usize>depth, <u8>closer);
          if (depth == 3) beginItem(slot, kind);
          state = kind == CLASS_OBJECT ? KEY_OR_END : VALUE_OR_END;
          continue;
        } else if (kind == CLASS_NUMBER) {
          const first = byte == 0x2d ? NUMBER_MINUS : byte == 0x30 ? NUMBER_ZERO : NUMBER_INTEGER;
          at++;
          byte = load<u8>(at);
          if (first == NUMBER_INTEGER && isDigit(byte)) byte = load<u8>(++at);
          // A comma or a closer at once: an integer of one or two digits, by far the most frequent. The rest goes the
          // long way.
          if (first == NUMBER_MINUS || byte == 0x2e || (byte > 0x2f && byte != closer) || at >= limit) {
            at = scanNumber(at, limit, first);
            if (at >= limit) return leave(slot, IN_NUMBER, depth);
            if (at == 0) return fail(slot, INVALID_JSON, <i32>faultAt + origin);
          }
        } else {
          if (kind == CLASS_NONE) return fail(slot, INVALID_JSON, <i32>at + origin);
          store<u32>(slot, kind == CLASS_TRUE ? 0x657572 : kind == CLASS_NULL ? 0x6c6c75 : 0x65736c61, LITERAL);
          at = scanLiteral(slot, at + 1, limit);
          if (at >= limit) return leave(slot, IN_LITERAL, depth);
          if (at == 0) return fail(slot, INVALID_JSON, <i32>faultAt + origin);
        }
        if (depth == 1) endTopLevelValue(slot, <i32>at + origin);
        state = AFTER;
        byte = load<u8>(at);
        if (byte <= 0x20 || at >= limit) continue;
      }
      // falls through
      case AFTER:
        if (byte == 0x2c) {
          at++;
          state = closer == 0x7d ? KEY : VALUE;
          continue;
        }
        if (byte != closer) return fail(slot, INVALID_JSON, <i32>at + origin);
        at++;
        depth--;
        closer = load<u8>(slot + STACK + <usize>depth);
        if (depth <= 2) endShallow(slot, depth, <i32>at + origin, byte);
        state = depth == 0 ? DONE : AFTER;
        continue;
      case START:
        if (byte != 0x7b) {
          const other = load<u8>(CLASSES + byte);
          return fail(
            slot,
            other == CLASS_NONE || other >= CLASS_ARRAY_END ? INVALID_JSON : NOT_AN_OBJECT,
            <i32>at + origin,
          );
        }
        at++;
        depth = 1;
        closer = 0x7d;
        store<u8>(slot, 0x7d, STACK + 1);
        state = KEY_OR_END;
        continue;
      default:
        return fail(slot, INVALID_JSON, <i32>at + origin);
    }
  }
  return leave(slot, state, depth);
}

function leave(slot: usize, state: i32, depth: i32): i32 {
  store<i32>(slot, depth, DEPTH);
  store<i32>(slot, tokenState, TOKEN);
  return state;
}

function fail(slot: usize, fault: i32, offset: i32): i32 {
  store<i32>(slot, fault, FAULT);
  store<i32>(slot, offset, FAULT_OFFSET);
  return FAULTY;
}

/**
 * Resumes the token that the end of the last chunk cut. Leaves the next state in the slot, and returns where to go on.
 */
function resumeToken(slot: usize, state: i32, limit: usize, origin: i32): usize {
  const depth = load<i32>(slot, DEPTH);
  tokenState = load<i32>(slot, TOKEN);
  let end: usize;
  if (state <= IN_STRING) end = resumeString(limit);
  else if (state == IN_NUMBER) end = scanNumber(SCRATCH, limit, tokenState);
  else end = scanLiteral(slot, SCRATCH, limit);

  if (end == 0) {
    store<i32>(slot, fail(slot, INVALID_JSON, <i32>faultAt + origin), STATE);
    return limit;
  }
  if (state == IN_KEY || (state == IN_STRING && wanted != WANT_NOTHING)) keepKeyPart(slot, SCRATCH, min(end, limit));
  if (end >= limit) {
    leave(slot, state, depth);
    return limit;
  }
  if (state == IN_KEY) {
    const length = load<i32>(slot, KEY_RAW_LENGTH);
    const fault = noteKey(slot, slot + KEY_RAW, length, true, depth);
    store<i32>(slot, fault != 0 ? fail(slot, fault, load<i32>(slot, KEY_START)) : COLON, STATE);
    return end + 1;
  }
  if (state == IN_STRING) {
    if (wanted != WANT_NOTHING) {
      noteValue(slot, wanted, slot + KEY_RAW, load<i32>(slot, KEY_RAW_LENGTH), true, load<i32>(slot, KEY_START));
      wanted = WANT_NOTHING;
    }
    end++;
  }
  if (depth == 1) endTopLevelValue(slot, <i32>end + origin);
  store<i32>(slot, AFTER, STATE);
  return end;
}

// --- Tokens ----------------------------------------------------------------------------------------------------------
// Each returns the position after what it read, a position >= limit when the chunk ended first (tokenState then says
// where inside), or 0 for a fault at faultAt.

function resumeString(limit: usize): usize {
  let at: usize = SCRATCH;
  if (tokenState == STRING_ESCAPE) {
    const meaning = load<u8>(ESCAPES + <usize>load<u8>(at));
    if (meaning == 0) return failAt(at);
    at++;
    tokenState = meaning == 1 ? STRING_HEX + 4 : STRING_PLAIN;
  }
  while (tokenState > STRING_HEX) {
    if (at >= limit) return limit;
    if (load<u8>(HEX + <usize>load<u8>(at)) == 0xff) return failAt(at);
    at++;
    tokenState = tokenState == STRING_HEX + 1 ? STRING_PLAIN : tokenState - 1;
  }
  return at >= limit ? limit : scanString(at, limit);
}

/** The position of the closing quote of the string whose content starts at `from`. */
// @ts-ignore: decorator
@inline
function scanString(from: usize, limit: usize): usize {
  // Keys, roles and types end within 16 bytes: spare them the long way.
  const stops = i8x16.bitmask(isSpecial(v128.load(from)));
  if (stops != 0) {
    const end = from + <usize>ctz(stops);
    if (load<u8>(end) == QUOTE && end < limit) {
      tokenEscaped = false;
      return end;
    }
    return scanLongString(from, limit);
  }
  return scanLongString(from + 16, limit); // no stop, so no sentinel either: from + 16 <= limit
}

/** 64 bytes a step: where are the quotes and backslashes, which bytes are escaped, is every escape one that exists. */
function scanLongString(from: usize, limit: usize): usize {
  const quotes = i8x16.splat(0x22);
  const backslashes = i8x16.splat(0x5c);
  const spaces = i8x16.splat(0x20);
  let at = from;
  let carry: u64 = 0; // 1 when the first byte of the block is escaped
  tokenEscaped = false;
  tokenState = STRING_PLAIN;
  while (at < limit) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    const quote = mask64(i8x16.eq(a, quotes), i8x16.eq(b, quotes), i8x16.eq(c, quotes), i8x16.eq(d, quotes));
    const backslash = mask64(
      i8x16.eq(a, backslashes),
      i8x16.eq(b, backslashes),
      i8x16.eq(c, backslashes),
      i8x16.eq(d, backslashes),
    );

    // simdjson's way: in a run of backslashes every second one is escaped; the subtraction carries through the run.
    let escaped = carry;
    let known = quote | backslash;
    if ((backslash | carry) != 0) {
      tokenEscaped = true;
      const ODD: u64 = 0xaaaaaaaaaaaaaaaa;
      const starts = backslash & ~carry;
      const codes = (((starts << 1) | ODD) - starts) ^ ODD;
      escaped = codes ^ (backslash | carry);
      carry = (codes & backslash) >> 63;
      known |= mask64(isLineLetter(a), isLineLetter(b), isLineLetter(c), isLineLetter(d));
    }

    const ends = quote & ~escaped;
    let inside = ends == 0 ? ~(<u64>0) : (ends & (0 - ends)) - 1;
    // Signed: control characters and bytes from 0x80 at once. Plain text passes with one branch never taken.
    const low = v128.or(
      v128.or(i8x16.gt_s(spaces, a), i8x16.gt_s(spaces, b)),
      v128.or(i8x16.gt_s(spaces, c), i8x16.gt_s(spaces, d)),
    );
    let control: u64 = 0;
    if (v128.any_true(low)) {
      const high = mask64(a, b, c, d);
      if ((high & inside) != 0) nonAscii = 1;
      control =
        mask64(i8x16.gt_s(spaces, a), i8x16.gt_s(spaces, b), i8x16.gt_s(spaces, c), i8x16.gt_s(spaces, d)) &
        ~high &
        inside;
      if (control != 0) inside = (control & (0 - control)) - 1; // a bad escape before it is the first fault
    }
    const unsure = escaped & inside & ~known;
    if (unsure != 0 && !checkEscapes(at, unsure, limit)) return 0;
    if (control != 0) return failAt(at + <usize>ctz(control));
    if (ends != 0) {
      const end = at + <usize>ctz(ends);
      if (end >= limit && tokenState == STRING_PLAIN) tokenState = <i32>((escaped >> <u64>(limit - at)) & 1);
      return end;
    }
    at += 64;
    // A block without anything special is mostly followed by more such blocks: prose, base64.
    if (backslash == 0 && !v128.any_true(low)) while (isPlain(at)) at += 64;
  }
  // Past the limit only when the sentinel's first quote was escaped by the chunk's last byte.
  if (tokenState == STRING_PLAIN && (at > limit || carry != 0)) tokenState = STRING_ESCAPE;
  return limit;
}

/** 64 bytes of printable ASCII with neither quote nor backslash. */
// @ts-ignore: decorator
@inline
function isPlain(at: usize): bool {
  const a = v128.load(at);
  const b = v128.load(at, 16);
  const c = v128.load(at, 32);
  const d = v128.load(at, 48);
  return !v128.any_true(v128.or(v128.or(isSpecial(a), isSpecial(b)), v128.or(isSpecial(c), isSpecial(d))));
}

/** A quote, a backslash, a control character or a byte from 0x80 (which are the negative ones). */
// @ts-ignore: decorator
@inline
function isSpecial(bytes: v128): v128 {
  const marks = v128.or(i8x16.eq(bytes, i8x16.splat(0x22)), i8x16.eq(bytes, i8x16.splat(0x5c)));
  return v128.or(marks, i8x16.gt_s(i8x16.splat(0x20), bytes));
}

/** `n` or `t`: nearly the only letters that are escaped in text, beside quotes and backslashes. */
// @ts-ignore: decorator
@inline
function isLineLetter(bytes: v128): v128 {
  return v128.or(i8x16.eq(bytes, i8x16.splat(0x6e)), i8x16.eq(bytes, i8x16.splat(0x74)));
}

/** Bit i is the top bit of byte i. */
// @ts-ignore: decorator
@inline
function mask64(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16)) |
    (<u64>(<u32>i8x16.bitmask(c) | (<u32>i8x16.bitmask(d) << 16)) << 32)
  );
}

/** Checks the escapes other than \" \\ \n \t. A bit of `bits` is set for each such escaped byte of the block. */
function checkEscapes(block: usize, bits: u64, limit: usize): bool {
  let rest = bits;
  while (rest != 0) {
    const at = block + <usize>ctz(rest);
    rest &= rest - 1;
    const meaning = load<u8>(ESCAPES + <usize>load<u8>(at));
    if (meaning == 0) {
      faultAt = at;
      return false;
    }
    if (meaning != 1) continue;
    for (let digit = at + 1; digit < at + 5; digit++) {
      if (digit >= limit) {
        tokenState = STRING_HEX + <i32>(at + 5 - digit);
        break;
      }
      if (load<u8>(HEX + <usize>load<u8>(digit)) == 0xff) {
        faultAt = digit;
        return false;
      }
    }
  }
  return true;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u32): bool {
  return byte - 0x30 < 10;
}

function scanNumber(from: usize, limit: usize, entryState: i32): usize {
  let at = from;
  let state = entryState;
  while (at < limit) {
    let byte: u32 = load<u8>(at);
    switch (state) {
      case NUMBER_INTEGER:
        while (isDigit(byte)) byte = load<u8>(++at);
        if (at >= limit) continue;
      // falls through
      case NUMBER_ZERO:
        if (byte == 0x2e) state = NUMBER_POINT;
        else if ((byte | 0x20) == 0x65) state = NUMBER_E;
        else return at;
        break;
      case NUMBER_FRACTION:
        while (isDigit(byte)) byte = load<u8>(++at);
        if (at >= limit) continue;
        if ((byte | 0x20) != 0x65) return at;
        state = NUMBER_E;
        break;
      case NUMBER_EXPONENT:
        while (isDigit(byte)) byte = load<u8>(++at);
        if (at >= limit) continue;
        return at;
      case NUMBER_MINUS:
        if (!isDigit(byte)) return failAt(at);
        state = byte == 0x30 ? NUMBER_ZERO : NUMBER_INTEGER;
        break;
      case NUMBER_POINT:
        if (!isDigit(byte)) return failAt(at);
        state = NUMBER_FRACTION;
        break;
      case NUMBER_E:
        if (byte == 0x2b || byte == 0x2d) {
          state = NUMBER_SIGN;
          break;
        }
      // falls through
      default:
        if (!isDigit(byte)) return failAt(at);
        state = NUMBER_EXPONENT;
    }
    at++;
  }
  tokenState = state;
  return limit;
}

function scanLiteral(slot: usize, from: usize, limit: usize): usize {
  let at = from;
  let rest = load<u32>(slot, LITERAL);
  while (rest != 0) {
    if (at >= limit) {
      store<u32>(slot, rest, LITERAL);
      return limit;
    }
    if (load<u8>(at) != <u8>rest) return failAt(at);
    rest >>= 8;
    at++;
  }
  // A literal that ends with the chunk is resumed with nothing left to read.
  store<u32>(slot, 0, LITERAL);
  return at;
}

function failAt(at: usize): usize {
  faultAt = at;
  return 0;
}

// --- Keys and the values of control keys -----------------------------------------------------------------------------

function startTopLevelValue(slot: usize, offset: i32, kind: u8): void {
  store<i32>(slot, offset, VALUE_START);
  store<i32>(slot, <i32>kind, VALUE_KIND);
}

function endTopLevelValue(slot: usize, offset: i32): void {
  const key = load<i32>(slot, PENDING_KEY);
  if (key < 0) return;
  const count = load<i32>(slot, FOUND_COUNT);
  const row = slot + FOUND + <usize>count * 12;
  store<i32>(row, key | (load<i32>(slot, VALUE_KIND) << 8));
  store<i32>(row, load<i32>(slot, VALUE_START), 4);
  store<i32>(row, offset, 8);
  store<i32>(slot, count + 1, FOUND_COUNT);
  store<i32>(slot, -1, PENDING_KEY);
}

function keepKeyPart(slot: usize, from: usize, end: usize): void {
  const kept = load<i32>(slot, KEY_RAW_LENGTH);
  const length = <i32>(end - from);
  if (kept < 0) return;
  if (kept + length > KEY_RAW_MAX) {
    store<i32>(slot, -1, KEY_RAW_LENGTH);
    return;
  }
  memory.copy(slot + KEY_RAW + <usize>kept, from, <usize>length);
  store<i32>(slot, kept + length, KEY_RAW_LENGTH);
}

/** Called when an object or array ends whose parent is the outermost object or one of its values. */
function endShallow(slot: usize, depth: i32, offset: i32, closer: u32): void {
  if (depth == 1) endTopLevelValue(slot, offset);
  else if (depth == 2 && closer == 0x7d && load<i32>(slot, IN_ITEM) != 0) {
    if (load<i32>(slot, LIST) == LIST_INPUT) endInputItem(slot);
    store<i32>(slot, 0, IN_ITEM);
  }
}

/**
 * Counts the item if it is a reference. Providers take an item that has neither a type nor a role for a reference by
 * its id, too.
 */
function endInputItem(slot: usize): void {
  const marks = load<u32>(slot, ITEM_MARKS);
  if ((marks & ITEM_REFERS) == 0 && load<i32>(slot, ITEM_NAMED) != 0) return;
  store<i32>(slot, load<i32>(slot, REFERENCES) + 1, REFERENCES);
  if ((marks & ITEM_AMBIGUOUS) != 0) mark(slot, MARK_AMBIGUOUS_REFERENCE);
}

/**
 * Notes a key of an item. A second key of that name makes the item ambiguous, since parsers differ in which of the two
 * members they take.
 */
function noteItemKey(slot: usize, bit: u32): void {
  const marks = load<u32>(slot, ITEM_MARKS);
  store<u32>(slot, marks | ((marks & bit) == 0 ? bit : ITEM_AMBIGUOUS), ITEM_MARKS);
}

/** A value at depth 3 begins. It is an item if it is an object in one of the lists that are examined. */
function beginItem(slot: usize, kind: u8): void {
  const isItem = kind == CLASS_OBJECT && load<i32>(slot, LIST) != 0 && load<u8>(slot + STACK + 2) == 0x5d;
  store<i32>(slot, isItem ? 1 : 0, IN_ITEM);
  store<i32>(slot, 0, ITEM_NAMED);
  store<i32>(slot, 0, ITEM_TOOLS);
  store<i32>(slot, 0, ITEM_MARKS);
}

function mark(slot: usize, bits: u32): void {
  store<u32>(slot, load<u32>(slot, MARKS) | bits, MARKS);
}

/**
 * Looks up a key by its decoded bytes, so `"\u006dodel"` is `model`. Returns a fault, or 0. `rawLength` is -1 for a key
 * that is longer than any table key.
 */
function noteKey(slot: usize, from: usize, rawLength: i32, escaped: bool, depth: i32): i32 {
  wanted = WANT_NOTHING;
  if (depth == 1) return noteTopKey(slot, from, rawLength, escaped);
  if (depth < load<i32>(slot, CACHE_DEPTH)) store<i32>(slot, 0, CACHE_DEPTH);
  if (depth == 3) store<i32>(slot, 0, ITEM_TOOLS);
  noteNestedKey(slot, from, rawLength, escaped, depth);
  return 0;
}

/**
 * A control key that comes twice, or that is written in other letters than its own, is a fault, since parsers differ in
 * what they make of it.
 */
function noteTopKey(slot: usize, from: usize, rawLength: i32, escaped: bool): i32 {
  store<i32>(slot, LIST_NONE, LIST);
  store<i32>(slot, 0, CACHE_DEPTH);
  let key = from;
  let length = rawLength;
  decodedFolds = false;
  if (escaped || (<u32>rawLength <= <u32>KEY_BYTES_MAX && !isAscii(from, rawLength))) {
    length = <u32>rawLength > <u32>KEY_RAW_MAX ? -1 : decodeKey(from, rawLength);
    key = DECODED;
  }
  if (<u32>length > <u32>KEY_BYTES_MAX) return 0;
  let row: usize = load<u8>(TOP_KEYS + <usize>length * 2);
  const end: usize = load<u8>(TOP_KEYS + <usize>length * 2, 1);
  if (row == end) return 0;
  const mask = MASKS + 32 - <usize>length;
  const low = v128.and(v128.load(key), v128.load(mask));
  const high = v128.and(v128.load(key, 16), v128.load(mask, 16));
  for (; row < end; row++) {
    const candidate = TOP_KEYS + TABLE_KEYS + row * 32;
    const lowDifference = v128.xor(low, v128.load(candidate));
    const highDifference = v128.xor(high, v128.load(candidate, 16));
    const control: u32 = load<u8>(TOP_KEYS + TABLE_META + row * 2);
    if (v128.any_true(v128.or(lowDifference, highDifference))) {
      if (
        control == 255 ||
        !isLetterCase(lowDifference, candidate) ||
        !isLetterCase(highDifference, candidate + 16)
      ) {
        continue;
      }
      decodedFolds = true;
    }
    if (control != 255) {
      store<i32>(slot, control, FAULT_KEY);
      if (decodedFolds) return LETTER_CASE;
      const seen = load<u64>(slot, SEEN);
      store<u64>(slot, seen | (<u64>1 << <u64>control), SEEN);
      if (((seen >> <u64>control) & 1) != 0) return DUPLICATE_KEY;
      store<i32>(slot, control, PENDING_KEY);
    }
    const flags: u32 = load<u8>(TOP_KEYS + TABLE_META + row * 2, 1);
    if (flags == 0) return 0;
    if ((flags & FLAG_ATTACHMENT) != 0) store<i32>(slot, load<i32>(slot, ATTACHMENTS) + 1, ATTACHMENTS);
    if ((flags & FLAG_CACHE_CONTROL) != 0) store<i32>(slot, 2, CACHE_DEPTH);
    if ((flags & FLAG_TOOLS) != 0) store<i32>(slot, LIST_TOOLS, LIST);
    if ((flags & FLAG_INPUT) != 0) store<i32>(slot, LIST_INPUT, LIST);
    return 0;
  }
  return 0;
}

/**
 * Whether the bytes of a key differ from a table key's by the case of letters alone. Table keys have only the bytes `a`
 * to `z` and `_`.
 */
// @ts-ignore: decorator
@inline
function isLetterCase(difference: v128, candidate: usize): bool {
  const caseBit = i8x16.splat(0x20);
  const other = v128.andnot(i8x16.ne(difference, i8x16.splat(0)), i8x16.eq(difference, caseBit));
  const noLetter = v128.and(i8x16.ne(difference, i8x16.splat(0)), i8x16.eq(v128.load(candidate), i8x16.splat(0x5f)));
  return !v128.any_true(v128.or(other, noLetter));
}

// @ts-ignore: decorator
@inline
function isAscii(from: usize, length: i32): bool {
  const mask = MASKS + 32 - <usize>length;
  const bytes = v128.or(v128.and(v128.load(from), v128.load(mask)), v128.and(v128.load(from, 16), v128.load(mask, 16)));
  return i8x16.bitmask(bytes) == 0;
}

/** In nested objects keys match in either letter case: a match only makes the request be examined more carefully. */
function noteNestedKey(slot: usize, from: usize, rawLength: i32, escaped: bool, depth: i32): void {
  let key = from;
  let length = rawLength;
  if (escaped) {
    length = <u32>rawLength > <u32>KEY_RAW_MAX ? -1 : decodeKey(from, rawLength);
    key = DECODED;
  }
  if (<u32>length > <u32>KEY_BYTES_MAX) return;
  let row: usize = load<u8>(NESTED_KEYS + <usize>length * 2);
  const end: usize = load<u8>(NESTED_KEYS + <usize>length * 2, 1);
  if (row == end) return;
  const mask = MASKS + 32 - <usize>length;
  const caseBits = i8x16.splat(0x20);
  const low = v128.and(v128.or(v128.load(key), caseBits), v128.load(mask));
  const high = v128.and(v128.or(v128.load(key, 16), caseBits), v128.load(mask, 16));
  for (; row < end; row++) {
    const candidate = NESTED_KEYS + TABLE_KEYS + row * 32;
    const difference = v128.or(v128.xor(low, v128.load(candidate)), v128.xor(high, v128.load(candidate, 16)));
    if (v128.any_true(difference)) continue;
    const flags: u32 = load<u8>(NESTED_KEYS + TABLE_META + row * 2, 1);
    if ((flags & FLAG_ATTACHMENT) != 0) store<i32>(slot, load<i32>(slot, ATTACHMENTS) + 1, ATTACHMENTS);
    if ((flags & FLAG_STORED) != 0) store<i32>(slot, load<i32>(slot, STORED_KEYS) + 1, STORED_KEYS);
    if ((flags & FLAG_CACHE_CONTROL) != 0) store<i32>(slot, depth + 1, CACHE_DEPTH);
    noteRole(slot, load<u8>(NESTED_KEYS + TABLE_META + row * 2), depth);
    return;
  }
}

function noteRole(slot: usize, role: u32, depth: i32): void {
  if (role == ROLE_TTL) {
    if (depth == load<i32>(slot, CACHE_DEPTH)) wanted = WANT_TTL;
    return;
  }
  if (role == 255 || load<i32>(slot, IN_ITEM) == 0) return;
  if (depth == 3) {
    const isTool = load<i32>(slot, LIST) == LIST_TOOLS;
    if (role == ROLE_TYPE) {
      wanted = isTool ? WANT_TOOL_TYPE : WANT_ITEM_TYPE;
      noteItemKey(slot, ITEM_HAS_TYPE);
    } else if (role == ROLE_ID) noteItemKey(slot, ITEM_HAS_ID);
    else if (role == ROLE_ROLE) store<i32>(slot, 1, ITEM_NAMED);
    else if (role == ROLE_TOOLS) store<i32>(slot, 1, ITEM_TOOLS);
  } else if (depth == 5 && role == ROLE_TYPE && load<i32>(slot, ITEM_TOOLS) != 0) wanted = WANT_TOOL_TYPE;
}

/**
 * Notes a wanted string. The tool types `function` and `custom`, which most clients send, are skipped; of any other
 * type request-scanner.ts gets the position.
 */
function noteValue(slot: usize, want: i32, from: usize, rawLength: i32, escaped: bool, offset: i32): void {
  let text = from;
  let length = rawLength;
  if (escaped) {
    length = <u32>rawLength > <u32>KEY_RAW_MAX ? -1 : decodeKey(from, rawLength);
    text = DECODED;
  }
  if (want == WANT_TTL) {
    if (length == 2 && load<u16>(text) == 0x6831) mark(slot, MARK_HOUR_CACHE);
    return;
  }
  if (want == WANT_ITEM_TYPE) {
    store<i32>(slot, 1, ITEM_NAMED);
    if (length == 14 && load<u64>(text) == 0x6665725f6d657469 && load<u64>(text, 6) == 0x65636e6572656665) {
      store<u32>(slot, load<u32>(slot, ITEM_MARKS) | ITEM_REFERS, ITEM_MARKS);
    }
    return;
  }
  if (
    (length == 8 && load<u64>(text) == 0x6e6f6974636e7566) ||
    (length == 6 && load<u32>(text) == 0x74737563 && load<u16>(text, 4) == 0x6d6f)
  ) {
    return;
  }
  const count = load<i32>(slot, TYPE_COUNT);
  store<i32>(slot, count + 1, TYPE_COUNT);
  if (count >= TYPES_MAX) return;
  const row = slot + TYPES + <usize>count * 8;
  store<i32>(row, want);
  store<i32>(row, offset, 4);
}

/**
 * Decodes a key, whose escapes are known to be well-formed, into DECODED. Returns its length, or -1 when the key is too
 * long or has a character that is not ASCII and that no parser takes for an ASCII one. Parsers that fold case as
 * Unicode says take U+017F and U+212A for `s` and `k`; Java takes U+0130 and U+0131 for `i`.
 */
function decodeKey(from: usize, rawLength: i32): i32 {
  const end = from + <usize>rawLength;
  let at = from;
  let length: i32 = 0;
  decodedFolds = false;
  while (at < end) {
    if (length == KEY_BYTES_MAX) return -1;
    let code: u32 = load<u8>(at++);
    if (code == BACKSLASH) {
      code = load<u8>(ESCAPES + <usize>load<u8>(at++));
      if (code == 1) {
        code = 0;
        for (const stop = at + 4; at < stop; at++) code = (code << 4) | <u32>load<u8>(HEX + <usize>load<u8>(at));
      }
    } else if (code >= 0xe0) {
      code =
        at + 2 > end ? 0 : ((code & 0x0f) << 12) | ((<u32>load<u8>(at) & 0x3f) << 6) | (<u32>load<u8>(at, 1) & 0x3f);
      at += 2;
      if (code < 0x80) return -1;
    } else if (code >= 0x80) {
      code = at >= end ? 0 : ((code & 0x1f) << 6) | (<u32>load<u8>(at) & 0x3f);
      at += 1;
      if (code < 0x80) return -1;
    }
    if (code >= 0x80) {
      if (code == 0x17f) code = 0x73;
      else if (code == 0x212a) code = 0x6b;
      else if (code == 0x130 || code == 0x131) code = 0x69;
      else return -1;
      decodedFolds = true;
    }
    store<u8>(DECODED + <usize>length, <u8>code);
    length++;
  }
  return length;
}
