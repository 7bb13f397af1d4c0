// Cuts text so that tokenizing it is linear. A tokenizer's work grows with the square of one unbroken run of letters, digits, signs or
// spaces: 64 KB of `a` take 1.6 seconds whole and 40 milliseconds in slices. Only runs longer than a slice are cut, so ordinary text is
// counted exactly; a cut adds about one token.

export const RUN_CHARACTERS_MAX = 512;

const SPACE = 1;
const DIGIT = 2;
const SIGN = 3;
const LETTER = 4;

let classOfUnit: Uint8Array | null = null;

/** The class of every UTF-16 code unit, made when first needed. Halves of surrogate pairs count as letters, which can only join runs. */
function classTable(): Uint8Array {
  if (classOfUnit !== null) return classOfUnit;
  const table = new Uint8Array(0x10000);
  for (let unit = 0; unit < table.length; unit++) {
    const character = String.fromCharCode(unit);
    if (/\s/u.test(character)) table[unit] = SPACE;
    else if (/\p{N}/u.test(character)) table[unit] = DIGIT;
    else table[unit] = /[\p{L}\p{M}\p{Cs}]/u.test(character) ? LETTER : SIGN;
  }
  classOfUnit = table;
  return table;
}

/** The text in order and in full, in slices none of which holds a run above the limit. Surrogate pairs stay together. */
export function cutLongRuns(text: string, runCharactersMax = RUN_CHARACTERS_MAX): readonly string[] {
  if (text.length <= runCharactersMax) return [text];
  const table = classTable();
  const slices: string[] = [];
  let sliceStart = 0;
  let runStart = 0;
  let runClass = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    const unitClass = table[unit] as number;
    if (unitClass !== runClass) {
      runClass = unitClass;
      runStart = index;
    } else if (index - runStart >= runCharactersMax) {
      const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
      const cut = isLowSurrogate ? index - 1 : index;
      slices.push(text.slice(sliceStart, cut));
      sliceStart = cut;
      runStart = cut;
    }
  }
  slices.push(text.slice(sliceStart));
  return slices;
}
