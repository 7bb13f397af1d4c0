// `${NAME}` in a configuration file reads the environment. The content of a variable is a value and never YAML: it
// cannot add a key or a list item. A `{` ends a plain word inside `[...]` and `{...}`, so before the file is read as
// YAML each `${NAME}` is replaced by a placeholder of equal length, marked by characters of the private use area: lines
// and columns stay true. Afterwards the placeholders in values are replaced by the values of the variables.

const PLACEHOLDER_START = '\uE000\uE001';
const PLACEHOLDER_END = '\uE002';
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
const PLACEHOLDER = /\uE000\uE001([A-Za-z_][A-Za-z0-9_]*)\uE002/g;

export function containsPlaceholder(text: string): boolean {
  return /[\uE000-\uE002]/.test(text);
}

export function referencesToPlaceholders(text: string): string {
  return text.replace(REFERENCE, `${PLACEHOLDER_START}$1${PLACEHOLDER_END}`);
}

export function placeholdersToReferences(text: string): string {
  return text.replace(PLACEHOLDER, '${$1}');
}

/** The variables that a file's text names. */
export function namesIn(text: string): readonly string[] {
  return [...text.matchAll(REFERENCE)].map(([, name = '']) => name);
}

/** The value with its placeholders replaced, and the names of variables that are not set. */
export function interpolate(
  value: string,
  environment: Readonly<Record<string, string | undefined>>,
): { text: string; missing: string[] } {
  const missing: string[] = [];
  const text = value.replace(PLACEHOLDER, (_, name: string) => {
    const found = environment[name];
    if (found === undefined || found === '') missing.push(name);
    return found ?? '';
  });
  return { text, missing };
}

const OTHER_NOTATION = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;

/**
 * A message for a value in LiteLLM's notation for environment variables, which says what to write instead; null: the
 * value is not in this notation.
 */
export function mistakenReference(value: string): string | null {
  const name = OTHER_NOTATION.exec(value.trim())?.[1];
  return name === undefined ? null : `os.environ/${name} is not read from the environment: write \${${name}}`;
}
