// Reads a YAML text into plain values, or into a list of all its mistakes with their lines.

import { readAliases } from './yaml-aliases.ts';
import { openYaml, plainValueOf } from './yaml-document.ts';

export type PlainYaml =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly errors: readonly string[] };

/** Errors never quote the text, since it may contain secrets. */
export function readPlainYaml(text: string): PlainYaml {
  const { document, lines, mistakes } = openYaml(text);
  const all = [...mistakes, ...readAliases(document).mistakes];
  if (all.length > 0)
    return { ok: false, errors: all.map(({ offset, message }) => `line ${lines.linePos(offset).line}: ${message}`) };
  const plain = plainValueOf(document);
  return plain.ok ? plain : { ok: false, errors: [plain.message] };
}
