// How a caller's own text stands in what we say.

/** Shows a caller's own text back to it: quoted, control characters escaped, and short whatever was sent. */
export function quoteShort(text: string): string {
  const characters = text.length > 120 ? `${text.slice(0, 120)}...` : text;
  return JSON.stringify(characters);
}
