// Sets values in a JSON file that may have comments and trailing commas, and leaves every other byte as it is.

import { applyEdits, modify, type ParseError, parse } from 'jsonc-parser';

export interface JsonValue {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** null: it is no JSON object, not even with comments. */
export function setInJson(text: string, values: readonly JsonValue[]): string | null {
  const start = text.trim() === '' ? '{}\n' : text;
  const errors: ParseError[] = [];
  const root: unknown = parse(start, errors, { allowTrailingComma: true });
  if (errors.length > 0 || typeof root !== 'object' || root === null || Array.isArray(root)) return null;
  const indent = /^\{[^\S\n]*\r?\n([ \t]+)\S/.exec(start)?.[1] ?? '  ';
  const formattingOptions = {
    insertSpaces: !indent.startsWith('\t'),
    tabSize: indent.length,
    eol: start.includes('\r\n') ? '\r\n' : '\n',
  };
  return values.reduce(
    (edited, { path, value }) => applyEdits(edited, modify(edited, [...path], value, { formattingOptions })),
    start,
  );
}
