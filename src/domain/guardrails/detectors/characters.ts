// Classes of bytes, as tables of 256 entries: 1 if the byte belongs to the class.

export type ByteClass = Uint8Array;

/** `characters`: single characters and ranges such as `a-z`. */
export function classOf(characters: string): ByteClass {
  const table = new Uint8Array(256);
  for (let at = 0; at < characters.length; at += 1) {
    const from = characters.charCodeAt(at);
    const isRange = characters[at + 1] === '-' && at + 2 < characters.length;
    const to = isRange ? characters.charCodeAt(at + 2) : from;
    for (let byte = from; byte <= to; byte += 1) table[byte] = 1;
    if (isRange) at += 2;
  }
  return table;
}

export const DIGIT = classOf('0-9');
export const UPPER = classOf('A-Z');
export const LETTER = classOf('A-Za-z');
export const ALNUM = classOf('A-Za-z0-9');
/** Characters that continue a name or a number: a finding may not begin after one or end before one. */
export const WORD = classOf('A-Za-z0-9_');

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

export function bytesIn(table: ByteClass): number[] {
  return [...table.keys()].filter((byte) => table[byte] === 1);
}

/** Every byte that is not in the class. */
export function complementOf(table: ByteClass): ByteClass {
  return table.map((member) => 1 - member);
}

const BACKSLASH = 0x5c;
/** Letters of the escapes `\n`, `\r` and `\t`, which stand for white space. */
const BLANK_LETTERS = classOf('nrt');

/**
 * Whether the byte before `at` is of the class, so that a value at `at` would be part of a longer one. The letter of a
 * spelt-out `\n`, `\r` or `\t` does not count: in programs and in JSON within a text, a line or a column begins after
 * it.
 */
export function isWithin(table: ByteClass, bytes: Uint8Array, at: number): boolean {
  if (at === 0 || table[bytes[at - 1] as number] !== 1) return false;
  return at === 1 || !isBlankEscape(bytes, at - 2);
}

export function isBlankEscape(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === BACKSLASH && BLANK_LETTERS[bytes[at + 1] as number] === 1;
}

/** The first place from `from` on, at most `max` bytes on, whose byte is not in the class. */
export function runEnd(table: ByteClass, bytes: Uint8Array, from: number, end: number, max: number): number {
  const limit = Math.min(end, from + max);
  let at = from;
  while (at < limit && table[bytes[at] as number] === 1) at += 1;
  return at;
}

/** The first place of the run of the class that ends before `to`, at most `max` bytes back. */
export function runStart(table: ByteClass, bytes: Uint8Array, to: number, start: number, max: number): number {
  const limit = Math.max(start, to - max);
  let at = to;
  while (at > limit && table[bytes[at - 1] as number] === 1) at -= 1;
  return at;
}

/**
 * The hold of a detector whose findings consist of `characters`, begin with one of `first` and have at most `longest`
 * bytes.
 */
export function holdByClass(characters: ByteClass, first: ByteClass, longest: number) {
  return (bytes: Uint8Array, start: number, end: number): number => {
    let at = runStart(characters, bytes, end, start, longest);
    while (at < end && first[bytes[at] as number] !== 1) at += 1;
    return at;
  };
}
