// Writes values as YAML on one line, in the style of the configuration files in the documentation.

/** Words that YAML does not read as text. */
const NO_TEXT = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i;
const PLAIN = /^[A-Za-z][A-Za-z0-9._/+-]*(?: [A-Za-z0-9(][A-Za-z0-9._/+()-]*)*$/;

export function flowText(value: unknown): string {
  if (typeof value === 'string') return isPlain(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flowText).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const pairs = Object.entries(value).map(([key, inner]) => `${flowText(key)}: ${flowText(inner)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}

function isPlain(text: string): boolean {
  return PLAIN.test(text) && !NO_TEXT.test(text);
}

/** The text on one line, for a comment. */
export function commentText(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
