// `${NAME}` in a configuration file reads the environment. What a variable holds is a value and never YAML: it cannot
// add a key or a list item. A `{` ends a plain word inside `[...]` and `{...}`, so before the file is read as YAML each
// `${NAME}` is veiled by characters of the private use area, as many as it has itself: lines and columns stay true.
// Afterwards the veiled names in values are exchanged.

const VEIL_START = '\uE000\uE001';
const VEIL_END = '\uE002';
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
const VEILED = /\uE000\uE001([A-Za-z_][A-Za-z0-9_]*)\uE002/g;

export function containsVeil(text: string): boolean {
  return /[\uE000-\uE002]/.test(text);
}

export function veilReferences(text: string): string {
  return text.replace(REFERENCE, `${VEIL_START}$1${VEIL_END}`);
}

export function unveil(text: string): string {
  return text.replace(VEILED, '${$1}');
}

/** A veiled value with the environment's, and the names it asked for in vain. */
export function interpolate(
  veiled: string,
  environment: Readonly<Record<string, string | undefined>>,
): { text: string; missing: string[] } {
  const missing: string[] = [];
  const text = veiled.replace(VEILED, (_, name: string) => {
    const value = environment[name];
    if (value === undefined || value === '') missing.push(name);
    return value ?? '';
  });
  return { text, missing };
}
