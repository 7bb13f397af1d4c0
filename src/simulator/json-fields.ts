// Reads fields of parsed JSON of unknown shape, and counts the tokens of texts by a fixed rule.

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The first of `values` that is a whole number above zero. */
export function firstWhole(...values: unknown[]): number | null {
  const found = values.find((value) => typeof value === 'number' && Number.isInteger(value) && value > 0);
  return typeof found === 'number' ? found : null;
}

export function objectsIn(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The texts of a message's content: a string, or the `text` of its parts. */
export function contentTexts(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objectsIn(content).flatMap((part) => (typeof part.text === 'string' ? [part.text] : []));
}

/** Every string anywhere inside `value`, except the names of members. */
export function allStrings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(allStrings);
  return isObject(value) ? Object.values(value).flatMap(allStrings) : [];
}

/** The fixed rule: one token for every four started bytes of all the text, at least one. */
export function countTokens(texts: readonly string[]): number {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.max(1, Math.ceil(bytes / 4));
}
