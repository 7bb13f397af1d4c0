// Whether a text that came from elsewhere quotes a secret, whole or in part, in whatever way it is written there: as it
// is, encoded as in an address or a form, escaped as in JSON or HTML. Such a text is neither logged nor stored.

/** A text that has so many letters and digits of a secret in a row has not met them by accident. */
const RUN_LENGTH = 8;
/** A secret of fewer letters and digits is compared as it is. */
const LETTERS_MIN = 4;
/** A text that was encoded by each of several programs. */
const ROUNDS_MAX = 4;
const ESCAPE = /%([0-9a-f]{2})|\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|&#x([0-9a-f]{1,5});|&#(\d{1,6});|&[a-z]{2,4};/gi;

export function quotesSecret(text: string, secret: string): boolean {
  let said = text;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    if (says(said, secret)) return true;
    const decoded = said.replace(ESCAPE, decodeOne);
    if (decoded === said) return false;
    said = decoded;
  }
  return says(said, secret);
}

/** Letters and digits alone are compared, because ways to write a text differ in the other characters. */
function says(text: string, secret: string): boolean {
  const letters = lettersOf(secret);
  if (letters.length < LETTERS_MIN) return text.includes(secret);
  const said = lettersOf(text);
  const runLength = Math.min(RUN_LENGTH, letters.length);
  for (let at = 0; at + runLength <= letters.length; at += 1)
    if (said.includes(letters.slice(at, at + runLength))) return true;
  return false;
}

function lettersOf(text: string): string {
  return text.replace(/[^A-Za-z0-9]/g, '');
}

/** Named characters of HTML are none of the letters and digits. */
function decodeOne(_: string, ...groups: readonly (string | undefined)[]): string {
  const [percent, short, long, hex, decimal] = groups;
  const code = percent ?? short ?? long ?? hex;
  if (code !== undefined) return String.fromCodePoint(Number.parseInt(code, 16));
  return decimal === undefined ? ' ' : String.fromCodePoint(Number(decimal));
}
