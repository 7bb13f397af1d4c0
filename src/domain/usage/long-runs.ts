// Cuts text so that tokenizing it takes linear time. A tokenizer first splits text into pieces (a word, a row of signs,
// a stretch of spaces), and its work grows with the square of a piece: 64 KB of `a` take 1.6 seconds whole and 40
// milliseconds in slices. Only runs longer than a slice are cut, so ordinary text is counted exactly; a cut adds about
// one token.

export const RUN_CHARACTERS_MAX = 512;

// The kinds of piece to which a UTF-16 code unit can belong, as bits. A run is a stretch of units with a kind in
// common; a piece is at most two runs. A unit with several kinds must continue a run of any of them, or a text that
// alternates such units with others would be one long piece without runs: combining marks belong to words in one
// encoding and to signs in another, line ends may follow signs inside their piece, and half of a surrogate pair does
// not tell what its character is.
const SPACE = 1;
const DIGIT = 2;
const SIGN = 4;
const LETTER = 8;

let kindsOfUnit: Uint8Array | null = null;

/** The kinds of every code unit, computed on first use. */
function kindTable(): Uint8Array {
  if (kindsOfUnit !== null) return kindsOfUnit;
  const table = new Uint8Array(0x10000);
  for (let unit = 0; unit < table.length; unit++) table[unit] = kindsOf(String.fromCharCode(unit));
  kindsOfUnit = table;
  return table;
}

function kindsOf(character: string): number {
  if (character === '\r' || character === '\n') return SPACE | SIGN;
  if (/\s/u.test(character)) return SPACE;
  if (/\p{L}/u.test(character)) return LETTER;
  if (/\p{N}/u.test(character)) return DIGIT;
  if (/\p{M}/u.test(character)) return SIGN | LETTER;
  return /\p{Cs}/u.test(character) ? SIGN | LETTER | DIGIT : SIGN;
}

/** The whole text in order, in slices without a run above the limit. Surrogate pairs stay together. */
export function cutLongRuns(text: string, runCharactersMax = RUN_CHARACTERS_MAX): readonly string[] {
  if (text.length <= runCharactersMax) return [text];
  const table = kindTable();
  const slices: string[] = [];
  let sliceStart = 0;
  let runStart = 0;
  let runKinds = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    const kinds = table[unit] as number;
    if ((runKinds & kinds) === 0) {
      runKinds = kinds;
      runStart = index;
    } else if (index - runStart >= runCharactersMax && !isInsidePair(text, index, unit)) {
      slices.push(text.slice(sliceStart, index));
      sliceStart = index;
      runStart = index;
      runKinds = kinds;
    } else {
      runKinds &= kinds;
    }
  }
  slices.push(text.slice(sliceStart));
  return slices;
}

/**
 * Whether a cut here would split a surrogate pair. Lone halves, which JSON escapes can produce, may be cut anywhere.
 */
export function isInsidePair(text: string, index: number, unit = text.charCodeAt(index)): boolean {
  if (unit < 0xdc00 || unit > 0xdfff) return false;
  const previous = text.charCodeAt(index - 1);
  return previous >= 0xd800 && previous <= 0xdbff;
}
