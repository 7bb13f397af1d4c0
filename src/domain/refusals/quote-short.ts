// Quotes a caller's own text in messages of the service.

/** The text in quotes, with control characters escaped, cut to 120 characters. */
export function quoteShort(text: string): string {
  const characters = text.length > 120 ? `${text.slice(0, 120)}...` : text;
  return JSON.stringify(characters);
}
