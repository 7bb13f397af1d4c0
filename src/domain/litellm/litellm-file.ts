// Reads LiteLLM's configuration file into plain values, with their lines and the exact text of numbers.

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml';
import { readAliases } from '../configuration/yaml-aliases.ts';
import { openYaml } from '../configuration/yaml-document.ts';
import type { ImportNote } from './litellm-notes.ts';

export interface Field {
  readonly name: string;
  readonly line: number;
  /** For a mapping or list: true. */
  readonly value: unknown;
  /** A scalar as it is written, such as 0.000420 or 3e-06. Empty for a mapping or list. */
  readonly text: string;
  /** The fields of a mapping. */
  readonly fields: readonly Field[];
  readonly isList: boolean;
  /** The items of a list. */
  readonly items: readonly Field[];
}

export type ReadFile =
  | { readonly ok: true; readonly root: Field; readonly notes: readonly ImportNote[] }
  | { readonly ok: false; readonly error: string };

/** Anchors within anchors can expand to more than fits into memory. */
const FIELDS_MAX = 1_000_000;

export function readLitellmFile(text: string, fileName: string): ReadFile {
  // LiteLLM accepts a key that occurs twice.
  const { document, lines, mistakes: broken } = openYaml(text, { uniqueKeys: false });
  const lineOf = (node: Node | null): number => lines.linePos(node?.range?.[0] ?? 0).line;
  const [first] = broken;
  if (first !== undefined)
    return { ok: false, error: `${fileName}:${lines.linePos(first.offset).line}: ${first.message}` };
  if (!isMap(document.contents)) return { ok: false, error: `${fileName}: must be a mapping with a model_list` };
  const { targets, mistakes } = readAliases(document);
  const unknown = mistakes.find(({ isKnown }) => !isKnown);
  if (unknown !== undefined) return { ok: false, error: `${fileName}:${lineOf(unknown.alias)}: ${unknown.message}` };
  const reading = new Reading(targets, lineOf);
  const root = reading.read('', document.contents, 1);
  if (reading.count > FIELDS_MAX) return { ok: false, error: `${fileName}: its anchors stand for too much` };
  const ofAliases = mistakes.map(({ alias, message }) => ({
    line: lineOf(alias),
    what: `*${alias.source}`,
    why: message,
  }));
  return { ok: true, root, notes: [...ofAliases, ...repeatedKeys(document, lineOf)] };
}

class Reading {
  count = 0;
  private readonly targets: ReadonlyMap<Alias, Node>;
  private readonly lineOf: (node: Node | null) => number;

  constructor(targets: ReadonlyMap<Alias, Node>, lineOf: (node: Node | null) => number) {
    this.targets = targets;
    this.lineOf = lineOf;
  }

  read(name: string, found: Node | null, line: number): Field {
    this.count += 1;
    const node = this.resolve(found);
    const isTooMuch = this.count > FIELDS_MAX;
    const fields = isMap(node) && !isTooMuch ? this.fieldsOf(node) : [];
    const items =
      isSeq(node) && !isTooMuch
        ? node.items.map((item) => this.read('', item as Node, item === null ? line : this.lineOf(item as Node)))
        : [];
    const value = isScalar(node) ? node.value : node === null ? null : true;
    const text = isScalar(node) ? (node.source ?? String(node.value)) : '';
    return { name, line, value, text, fields, isList: isSeq(node), items };
  }

  /** The mapping's own fields, then merged fields (`<<`) that it does not have itself. */
  private fieldsOf(map: YAMLMap): readonly Field[] {
    const own = new Map<string, Field>();
    const merged: Field[] = [];
    for (const pair of map.items) {
      const name = nameOf(pair);
      if (isMerge(pair)) merged.unshift(...this.mergedFields(pair.value as Node | null));
      else own.set(name, this.read(name, pair.value as Node | null, this.lineOf(pair.key as Node | null)));
    }
    for (const field of merged) if (!own.has(field.name)) own.set(field.name, field);
    return [...own.values()];
  }

  /** If several mappings are merged, the first has priority. */
  private mergedFields(found: Node | null): readonly Field[] {
    const node = this.resolve(found);
    const maps = isSeq(node) ? node.items.map((item) => this.resolve(item as Node)) : [node];
    return maps.flatMap((map) => (isMap(map) && this.count <= FIELDS_MAX ? this.fieldsOf(map) : []));
  }

  private resolve(node: Node | null): Node | null {
    return isAlias(node) ? (this.targets.get(node) ?? null) : node;
  }
}

function repeatedKeys(document: Document, lineOf: (node: Node | null) => number): ImportNote[] {
  const notes: ImportNote[] = [];
  visit(document, {
    Map(_, map) {
      const last = new Map(map.items.map((pair) => [nameOf(pair), pair]));
      for (const pair of map.items) {
        const counted = last.get(nameOf(pair));
        if (counted === pair || counted === undefined || isMerge(pair)) continue;
        const why = `it stands again on line ${lineOf(counted.key as Node)}, which is what counts`;
        notes.push({ line: lineOf(pair.key as Node), what: nameOf(pair), why });
      }
    },
  });
  return notes;
}

function nameOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : '';
}

/** Merge keys are those of YAML 1.1, which LiteLLM reads. */
function isMerge({ key }: Pair): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

export function fieldOf(parent: Field | undefined, name: string): Field | undefined {
  return parent?.fields.find((field) => field.name === name && field.value !== null);
}

/** A non-empty text, or a number or boolean as it is written; null: there is none. */
export function textOf(parent: Field | undefined, name: string): string | null {
  const field = fieldOf(parent, name);
  if (field === undefined) return null;
  const text = typeof field.value === 'string' ? field.value.trim() : field.text;
  return text === '' ? null : text;
}

const REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;

/** Converts `os.environ/K` to the notation of our files; any other text stays as it is. */
export function withReference(text: string): string {
  const name = REFERENCE.exec(text)?.[1];
  return name === undefined ? text : `\${${name}}`;
}

/** The variables that the file names anywhere. */
export function namedVariables(text: string): readonly string[] {
  return [...text.matchAll(/os\.environ\/([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name = '']) => name);
}

export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}
