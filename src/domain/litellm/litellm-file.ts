// Reads LiteLLM's configuration file as plain values together with their lines and the exact text of their numbers.

import { isMap, isScalar, isSeq, LineCounter, type Node, type ParsedNode, parseDocument } from 'yaml';

export interface Field {
  readonly name: string;
  readonly line: number;
  readonly value: unknown;
  /** A number as it is written: 0.000420, 3e-06. Of a mapping or list: empty. */
  readonly text: string;
  /** Of a mapping. */
  readonly fields: readonly Field[];
  /** Of a list. */
  readonly items: readonly Field[];
}

export type ReadFile = { readonly ok: true; readonly root: Field } | { readonly ok: false; readonly error: string };

export function readLitellmFile(text: string, fileName: string): ReadFile {
  const lines = new LineCounter();
  // LiteLLM writes the anchors and merges of YAML 1.1, and numbers such as 20_000.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, uniqueKeys: false });
  const [error] = document.errors;
  if (error !== undefined)
    return { ok: false, error: `${fileName}:${lines.linePos(error.pos[0]).line}: ${error.message}` };
  if (!isMap(document.contents)) return { ok: false, error: `${fileName}: must be a mapping with a model_list` };
  const resolve = (node: Node | null): Node | null =>
    node !== null && 'source' in node && !isScalar(node) ? ((node as never as Alias).resolve(document) ?? null) : node;
  const read = (name: string, found: Node | null, line: number): Field => {
    const node = resolve(found);
    const lineOf = (inner: Node | null): number => lines.linePos(inner?.range?.[0] ?? 0).line || line;
    const fields = isMap(node)
      ? node.items.map((pair) =>
          read(String((pair.key as { value?: unknown }).value), pair.value as Node | null, lineOf(pair.key as Node)),
        )
      : [];
    const items = isSeq(node) ? node.items.map((item) => read('', item as ParsedNode, lineOf(item as Node))) : [];
    const value = node === null ? null : (node.toJS(document) as unknown);
    return { name, line, value, text: isScalar(node) ? (node.source ?? String(node.value)) : '', fields, items };
  };
  return { ok: true, root: read('', document.contents, 1) };
}

interface Alias {
  resolve(document: unknown): Node | undefined;
}

export function fieldOf(parent: Field | undefined, name: string): Field | undefined {
  return parent?.fields.find((field) => field.name === name && field.value !== null);
}

/** Text that is not empty, a number or a boolean as it is written. */
export function textOf(parent: Field | undefined, name: string): string | null {
  const field = fieldOf(parent, name);
  if (field === undefined) return null;
  const text = typeof field.value === 'string' ? field.value.trim() : field.text;
  return text === '' ? null : text;
}

const REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;

/** `os.environ/K` in the notation of our files; anything else as it is. */
export function withReference(text: string): string {
  const name = REFERENCE.exec(text)?.[1];
  return name === undefined ? text : `\${${name}}`;
}

export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}
