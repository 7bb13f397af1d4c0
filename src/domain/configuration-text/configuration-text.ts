// Changes the text of a configuration file in place: everything that a change does not concern stays as people wrote
// it, comments and spaces included.

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { placeholdersToReferences, referencesToPlaceholders } from '../configuration/interpolation.ts';
import type { Place } from '../configuration/problem.ts';
import { type Aliases, readAliases } from '../configuration/yaml-aliases.ts';
import { openYaml, plainValueOf, type YamlMistake } from '../configuration/yaml-document.ts';
import { flowText } from './flow-text.ts';

export type OpenedText =
  | { readonly ok: true; readonly file: ConfigurationText }
  | { readonly ok: false; readonly errors: readonly string[] };

/** A replacement of the text between two offsets. */
interface Splice {
  readonly from: number;
  readonly until: number;
  readonly text: string;
}

interface ReadText {
  readonly values: unknown;
  readonly document: Document;
  readonly lines: LineCounter;
  readonly targets: Aliases['targets'];
}

export class ConfigurationText {
  readonly text: string;
  /** The parsed values; `${NAME}` stays as it is written. */
  readonly values: Readonly<Record<string, unknown>>;
  private readonly document: Document;
  private readonly lines: LineCounter;

  private readonly targets: Aliases['targets'];
  /** The nodes that an alias refers to: each stands for several places. */
  private readonly shared: ReadonlySet<Node>;

  private constructor(text: string, { values, document, lines, targets }: ReadText) {
    this.text = text;
    this.values = (withReferences(values) ?? {}) as Readonly<Record<string, unknown>>;
    this.document = document;
    this.lines = lines;
    this.targets = targets;
    this.shared = new Set(targets.values());
  }

  /** `fileName` is what the errors call the file. */
  static open(text: string, fileName: string): OpenedText {
    // A placeholder is as long as the `${NAME}` that it replaces, so offsets are those of the text.
    const { document, lines, mistakes } = openYaml(referencesToPlaceholders(text));
    const print = ({ offset, message }: YamlMistake): string => `${fileName}:${lines.linePos(offset).line}: ${message}`;
    if (mistakes.length > 0) return { ok: false, errors: mistakes.map(print) };
    if (document.contents !== null && !isMap(document.contents) && !isEmpty(document))
      return { ok: false, errors: [`${fileName}: must be a mapping of keys to values`] };
    const { targets, mistakes: mistakenAliases } = readAliases(document);
    if (mistakenAliases.length > 0) return { ok: false, errors: mistakenAliases.map(print) };
    const plain = plainValueOf(document);
    if (!plain.ok) return { ok: false, errors: [`${fileName}: ${plain.message}`] };
    return { ok: true, file: new ConfigurationText(text, { values: plain.value, document, lines, targets }) };
  }

  lineOf(place: Place): number {
    return this.lines.linePos(this.nodesTo(place).at(-1)?.range?.[0] ?? 0).line;
  }

  /** Whether a change there would change other places as well, by an anchor. */
  isShared(place: Place): boolean {
    return this.nodesTo(place).some((node) => this.isSharedNode(node));
  }

  /** Whether something within the place is shared with other places. */
  holdsShared(place: Place): boolean {
    const node = this.nodeAt(place);
    let found = false;
    if (node !== undefined)
      visit(node, {
        Node: (_, inner) => {
          found ||= this.isSharedNode(inner);
        },
      });
    return found;
  }

  /** Adds an entry at the end of a list and creates the list if it does not exist. `write` gets the indentation. */
  addTo(place: Place, write: (indent: string) => readonly string[]): string {
    const list = this.nodeAt(place);
    if (isSeq(list) && !list.flow && list.items.length > 0) return this.addBehind(list, write);
    const value = parseDocument(referencesToPlaceholders(write('').join('\n'))).toJS() as unknown[];
    if (isSeq(list) && list.flow === true) return this.addWithin(list, value);
    const name = String(place.at(-1));
    if (place.length > 1) throw new Error(`${place.join('.')} is no list`);
    const pair = isMap(this.document.contents)
      ? this.document.contents.items.find(({ key }) => isScalar(key) && key.value === name)
      : undefined;
    const entry = write('  ').join('\n');
    if (pair === undefined) {
      const start = this.text === '' || this.text.endsWith('\n') ? '' : '\n';
      const behind = this.text.length;
      return this.splice([{ from: behind, until: behind, text: `${start}${name}:\n${entry}\n` }]);
    }
    // The file has `models:` with nothing after it.
    const keyEnd = (pair.key as Node).range?.[1] ?? 0;
    const lineEnd = this.endOfLine(keyEnd);
    return this.splice([{ from: lineEnd, until: lineEnd, text: `\n${entry}` }]);
  }

  /** Replaces a value, leaving parts that do not change untouched if possible. */
  replace(place: Place, value: unknown): string {
    const node = this.nodeAt(place);
    return this.splice(node === undefined ? this.insertion(place, value) : this.changes(node, value));
  }

  /** Replaces the first match between the beginnings of two places. */
  replaceText(between: readonly [Place, Place], pattern: RegExp, by: string): string {
    const [from, until] = between.map((place) => this.nodeAt(place)?.range?.[0]);
    if (from === undefined || until === undefined) return this.text;
    return this.text.slice(0, from) + this.text.slice(from, until).replace(pattern, by) + this.text.slice(until);
  }

  private isSharedNode(node: Node): boolean {
    return isAlias(node) || this.shared.has(node);
  }

  /** The nodes on the path to a place, including its own, aliases unresolved. Fewer if the place does not exist. */
  private nodesTo(place: Place): readonly Node[] {
    const way = this.document.contents === null ? [] : [this.document.contents as Node];
    for (const step of place) {
      const last = way.at(-1);
      const parent = isAlias(last) ? this.targets.get(last) : last;
      const next: unknown = isMap(parent) || isSeq(parent) ? parent.get(step, true) : undefined;
      if (!isNode(next)) break;
      way.push(next);
    }
    return way;
  }

  private nodeAt(place: Place): Node | undefined {
    return this.nodesTo(place)[place.length];
  }

  private addBehind(list: YAMLSeq, write: (indent: string) => readonly string[]): string {
    // The range of a list begins with its first dash.
    const indent = ' '.repeat(this.lines.linePos(list.range?.[0] ?? 0).col - 1);
    const at = this.endOfLine((list.items.at(-1) as Node).range?.[1] ?? this.text.length);
    return this.splice([{ from: at, until: at, text: `\n${write(indent).join('\n')}` }]);
  }

  private addWithin(list: YAMLSeq, values: readonly unknown[]): string {
    const last = list.items.at(-1) as Node | undefined;
    const at = last?.range?.[1] ?? (list.range?.[0] ?? 0) + 1;
    const text = values.map((value) => flowText(withReferences(value))).join(', ');
    return this.splice([{ from: at, until: at, text: last === undefined ? text : `, ${text}` }]);
  }

  /** The insertion of a new value after the last entry of its mapping. */
  private insertion(place: Place, value: unknown): Splice[] {
    const map = this.nodeAt(place.slice(0, -1));
    if (!isMap(map)) throw new Error(`${place.join('.')} has no place`);
    return [this.pairsBehind(map, [[String(place.at(-1)), value]])];
  }

  private pairsBehind(map: YAMLMap, pairs: readonly (readonly [string, unknown])[]): Splice {
    const last = map.items.at(-1);
    const end = ((last?.value ?? last?.key) as Node | undefined)?.range?.[1] ?? (map.range?.[0] ?? 0) + 1;
    const texts = pairs.map(([name, value]) => `${flowText(name)}: ${flowText(value)}`);
    if (map.flow === true) {
      const text = texts.join(', ');
      return { from: end, until: end, text: last === undefined ? ` ${text} ` : `, ${text}` };
    }
    const at = this.endOfLine(end);
    const start = (map.items[0]?.key as Node | undefined)?.range?.[0] ?? 0;
    const indent = `\n${' '.repeat(this.lines.linePos(start).col - 1)}`;
    return { from: at, until: at, text: texts.map((text) => indent + text).join('') };
  }

  /** The splices that give a node a value. */
  private changes(node: Node, value: unknown): Splice[] {
    if (isScalar(node) && (typeof value !== 'object' || value === null)) {
      return node.value === value ? [] : [this.exchange(node, value)];
    }
    if (!isMap(node) || typeof value !== 'object' || value === null || Array.isArray(value)) {
      return JSON.stringify(node.toJSON()) === JSON.stringify(value) ? [] : [this.exchange(node, value)];
    }
    const wanted = Object.entries(value);
    const present = new Map(node.items.map((pair) => [String((pair.key as { value?: unknown }).value), pair.value]));
    if ([...present.keys()].some((name) => !Object.hasOwn(value, name))) return [this.exchange(node, value)];
    const added = wanted.filter(([name]) => !present.has(name));
    return [
      ...wanted.flatMap(([name, inner]) => {
        const found = present.get(name) as Node | undefined;
        return found === undefined ? [] : this.changes(found, inner);
      }),
      ...(added.length === 0 ? [] : [this.pairsBehind(node, added)]),
    ];
  }

  private exchange(node: Node, value: unknown): Splice {
    const [from = 0, end = 0] = node.range ?? [];
    const until = this.text[end - 1] === '\n' ? from + this.text.slice(from, end).trimEnd().length : end;
    return { from, until, text: flowText(value) };
  }

  /** The end of the line on which a value ends. The range of a value at the end of its line includes the line's end. */
  private endOfLine(offset: number): number {
    const found = this.text[offset - 1] === '\n' ? offset - 1 : this.text.indexOf('\n', offset);
    const end = found === -1 ? this.text.length : found;
    return this.text[end - 1] === '\r' ? end - 1 : end;
  }

  private splice(splices: readonly Splice[]): string {
    const lineEnd = /^[^\n]*\r\n/.test(this.text) ? '\r\n' : '\n';
    const backwards = splices.toSorted((one, other) => other.from - one.from);
    return backwards.reduce(
      (text, { from, until, text: by }) => text.slice(0, from) + by.replaceAll('\n', lineEnd) + text.slice(until),
      this.text,
    );
  }
}

function isEmpty(document: Document): boolean {
  return isScalar(document.contents) && document.contents.value === null;
}

function withReferences(value: unknown): unknown {
  if (typeof value === 'string') return placeholdersToReferences(value);
  if (Array.isArray(value)) return value.map(withReferences);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withReferences(inner)]));
}
