// Tells whether a text that came from elsewhere quotes a secret, whole or in part, however the secret is written in it:
// as it is, encoded as in a URL or a form, escaped as in JSON or HTML, in base64 or hex, in capitals. Such a text is
// neither logged nor stored.

/** A text with so many letters and digits of a secret in a row does not contain them by chance. */
const RUN_LENGTH = 8;
/** A secret with fewer letters and digits is compared as a whole, with its other characters. */
const LETTERS_MIN = 4;
/** How often a text is decoded, since each of several programs may have encoded it. */
const ROUNDS_MAX = 4;
/** The ways to escape a character: by its number, then by its name. */
const ESCAPE = new RegExp(
  [
    /(?:%|\\x)(?<byte>[0-9a-f]{2})/,
    /\\(?<octal>[0-3]?[0-7]{1,2})/,
    /[%\\]u(?<four>[0-9a-f]{4})/,
    /\\u\{0*(?<braced>[0-9a-f]{1,6})\}/,
    /&#x0*(?<hex>[0-9a-f]{1,6});?/,
    /&#0*(?<decimal>\d{1,7});?/,
    /&(?<name>[a-z]{2,31});/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

export function quotesSecret(text: string, secret: string): boolean {
  const traces = tracesOf(secret);
  let said = bytesOf(text);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    if (holds(said, traces)) return true;
    const decoded = said.replace(ESCAPE, decodeOne);
    if (decoded === said) return false;
    said = decoded;
  }
  return holds(said, traces);
}

/** Parts of a secret. A text that has one of them quotes the secret. */
interface Traces {
  /** Parts of exactly RUN_LENGTH letters and digits, so that one pass over a text looks for all. */
  readonly runs: ReadonlySet<string>;
  readonly shorter: readonly string[];
  /** The whole of a secret with fewer than LETTERS_MIN letters and digits; null: the secret has more. */
  readonly whole: string | null;
}

/** Letters and digits alone are compared, because ways to write a text differ in the other characters. */
function tracesOf(secret: string): Traces {
  const bytes = Buffer.from(secret, 'utf8');
  const isShort = lettersOf(secret).length < LETTERS_MIN;
  const runs = new Set<string>();
  const shorter: string[] = [];
  for (const form of [secret, bytes.toString('hex'), ...base64Of(bytes)]) {
    const letters = lettersOf(form);
    if (letters.length >= RUN_LENGTH) for (const run of runsOf(letters)) runs.add(run);
    else if (letters.length >= LETTERS_MIN) shorter.push(letters);
  }
  return { runs, shorter, whole: isShort ? bytesOf(secret) : null };
}

function holds(text: string, { runs, shorter, whole }: Traces): boolean {
  if (whole !== null) {
    const kept = withoutSpaces(whole);
    if (kept === '' ? text.includes(whole) : withoutSpaces(text).includes(kept)) return true;
  }
  const letters = lettersOf(text);
  if (shorter.some((one) => letters.includes(one))) return true;
  for (const run of runsOf(letters)) if (runs.has(run)) return true;
  return false;
}

function* runsOf(letters: string): Iterable<string> {
  for (let at = 0; at + RUN_LENGTH <= letters.length; at += 1) yield letters.slice(at, at + RUN_LENGTH);
}

/**
 * The base64 of the bytes at each of the three offsets that bytes before them can cause, without the characters that
 * the bytes share with their neighbours.
 */
function base64Of(bytes: Buffer): readonly string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}

/** The letters and digits of a text, in lower case. */
function lettersOf(text: string): string {
  return text.replace(/[^A-Za-z0-9]/g, '').toLowerCase();
}

/** Without the characters that forms write for a space and escapes put before others; in small letters. */
function withoutSpaces(text: string): string {
  return text.replace(/[\s+\\]/g, '').toLowerCase();
}

/**
 * The text with one character for each byte of its UTF-8, because URLs and forms escape bytes where other texts escape
 * characters.
 */
function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function decodeOne(...params: readonly unknown[]): string {
  const { byte, octal, four, braced, hex, decimal, name } = params.at(-1) as Readonly<
    Record<string, string | undefined>
  >;
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? ' ';
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
  if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
  const code = decimal === undefined ? Number.parseInt(four ?? braced ?? hex ?? '', 16) : Number(decimal);
  return code > 0x10_ff_ff ? ' ' : bytesOf(String.fromCodePoint(code));
}
