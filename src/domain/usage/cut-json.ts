// Completes a JSON document that was cut anywhere, so that it can be parsed as far as it came: an open string ends
// where it was cut, and a key without a value, half a literal and half an escape are dropped. One pass over the text,
// whatever it contains.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACES = ' \t\r\n';

/**
 * null when the text is not the beginning of an object. The result may still not be JSON: only brackets and strings
 * were looked at.
 */
export function closeCutJson(text: string): string | null {
  if (!/^\s*\{/.test(text)) return null;
  const closers: string[] = [];
  /** Everything before this is complete except for its closing brackets. */
  let completeEnd = 0;
  /** The last character outside strings that is not white space. */
  let last = '';
  for (let index = 0; index < text.length; index++) {
    const character = text[index] as string;
    if (character === '"') {
      const isValue = last === ':' || closers.at(-1) === ']';
      const end = readString(text, index + 1);
      if (!end.closed) return closed(isValue ? `${text.slice(0, end.index)}"` : text.slice(0, completeEnd), closers);
      index = end.index;
      if (isValue) completeEnd = index + 1;
    } else if (character === '{' || character === '[') {
      closers.push(character === '{' ? '}' : ']');
      completeEnd = index + 1;
    } else if (character === '}' || character === ']') {
      if (closers.pop() !== character) return null;
      completeEnd = index + 1;
    } else if (character === ',') {
      completeEnd = index;
    }
    if (!SPACES.includes(character)) last = character;
  }
  return closed(text.slice(0, completeEnd), closers);
}

function closed(text: string, closers: readonly string[]): string {
  return text + closers.toReversed().join('');
}

/** Where a string ends: at its quote, or where the text ends, before an incomplete escape. */
function readString(text: string, start: number): { readonly closed: boolean; readonly index: number } {
  let index = start;
  while (index < text.length) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE) return { closed: true, index };
    const length = unit !== BACKSLASH ? 1 : text[index + 1] === 'u' ? 6 : 2;
    if (index + length > text.length) return { closed: false, index };
    index += length;
  }
  return { closed: false, index };
}
