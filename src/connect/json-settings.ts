// Sets values in a JSON file that may have comments and trailing commas, and leaves every other byte as it is.

import { isDeepStrictEqual } from 'node:util';
import { applyEdits, modify, type ParseError, parse } from 'jsonc-parser';

export interface JsonValue {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** null: the text is no JSON object, not even one with comments, or it has no place for the values. */
export function setInJson(text: string, values: readonly JsonValue[]): string | null {
  const start = text.trim() === '' ? '{}\n' : text;
  const errors: ParseError[] = [];
  const root: unknown = parse(start, errors, { allowTrailingComma: true });
  if (errors.length > 0 || !isObject(root) || values.some(({ path }) => !hasPlace(root, path))) return null;
  const indent = /^\{[^\S\n]*\r?\n([ \t]+)\S/.exec(start)?.[1] ?? '  ';
  const formattingOptions = {
    insertSpaces: !indent.startsWith('\t'),
    tabSize: indent.length,
    eol: start.includes('\r\n') ? '\r\n' : '\n',
  };
  const edited = values.reduce(
    (before, { path, value }) => applyEdits(before, modify(before, [...path], value, { formattingOptions })),
    start,
  );
  // If a name appears twice, `modify` sets the first, but readers use the last. So the result is read back and
  // compared.
  const read: unknown = parse(edited, [], { allowTrailingComma: true });
  return values.every(({ path, value }) => isDeepStrictEqual(valueAt(read, path), value)) ? edited : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), root);
}

/** Whether everything above the value is an object or absent. */
function hasPlace(root: unknown, path: readonly string[]): boolean {
  return path.every((_, depth) => {
    const above = valueAt(root, path.slice(0, depth));
    return above === undefined || isObject(above);
  });
}
