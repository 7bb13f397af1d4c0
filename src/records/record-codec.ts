// How records lie in a frame of the spool: a JSON array of dictionary entries and records, made from the table of
// fields.
//
//   [ ["caller", ...], ["deployment", ...], [0, 1, ...start, {...optional}],                          an admitted one
//      entry 0          entry 1              its caller and its deployment, by number
//     ["ending", ...], [0, 1, ...start, 2, ...end, {...optional}], ... ]                               the end of one
//      entry 2                             its ending, by number
//
// A record refers to entries before it in its own frame. Values are in the order of the table; those of optional fields
// are in an object behind the rest, by name, which is left out when there are none. Every request writes two records,
// and what many of them say alike is most of their bytes.

import type { Usage } from '../domain/usage/usage.ts';
import type { ExecutionEnd, ExecutionRecord, ExecutionStart } from './execution-record.ts';
import { FIELD_ROWS, type FieldName, type Part, USAGE_ROWS, type UsageCount } from './fields.ts';

type Values = Readonly<Record<string, unknown>>;
type DictionaryPart = 'caller' | 'deployment' | 'ending';

function namesOf(part: Part, isOptional: boolean): readonly FieldName[] {
  return FIELD_ROWS.filter(([, field]) => field.part === part && field.isOptional === isOptional).map(([name]) => name);
}

const ENTRY_NAMES: Readonly<Record<DictionaryPart, readonly FieldName[]>> = {
  caller: namesOf('caller', false),
  deployment: namesOf('deployment', false),
  ending: namesOf('ending', false),
};
const START_NAMES = namesOf('start', false);
const USAGE_NAMES: readonly UsageCount[] = USAGE_ROWS.map(([name]) => name);
const OPTIONAL_START_NAMES = namesOf('start', true);
const END_NAMES = namesOf('end', false);
const OPTIONAL_END_NAMES = namesOf('end', true);
const OPTIONAL_NAMES = [...OPTIONAL_START_NAMES, ...OPTIONAL_END_NAMES];

/** Entries and references before the values of the start, and before those of the end. */
const START_AT = 2;
const ENDING_AT = START_AT + START_NAMES.length;
const END_AT = ENDING_AT + 1;
const TERMINAL_LENGTH = END_AT + END_NAMES.length;

/** The dictionary of one frame that is being written: the values of its entries, and their numbers. */
class FrameDictionary {
  private readonly entries: Readonly<Record<DictionaryPart, { values: Values; number: number }[]>> = {
    caller: [],
    deployment: [],
    ending: [],
  };
  private count = 0;

  /** The number of the entry with these values, which goes into `frame` if it is new. The latest is the likeliest. */
  refer(part: DictionaryPart, values: Values, frame: unknown[]): number {
    const entries = this.entries[part];
    const names = ENTRY_NAMES[part];
    for (let index = entries.length - 1; index >= 0; index--) {
      const entry = entries[index];
      if (entry !== undefined && haveSame(entry.values, values, names)) return entry.number;
    }
    const number = this.count++;
    entries.push({ values, number });
    frame.push([part, ...names.map((name) => values[name])]);
    return number;
  }
}

function haveSame(one: Values, other: Values, names: readonly FieldName[]): boolean {
  for (const name of names) if (one[name] !== other[name]) return false;
  return true;
}

/** A frame that is being put together: what is in it so far, and its dictionary. */
export class OpenFrame {
  records = 0;
  private readonly items: unknown[] = [];
  private readonly dictionary = new FrameDictionary();

  /**
   * A record of a start, or with `end` that of an end, behind the dictionary entries that the frame does not have yet.
   */
  add(start: ExecutionStart, end: ExecutionEnd | null): void {
    const { items, dictionary } = this;
    const startValues = start as unknown as Values;
    const caller = dictionary.refer('caller', startValues, items);
    const deployment = dictionary.refer('deployment', startValues, items);
    const record: unknown[] = [caller, deployment];
    for (const name of START_NAMES) record.push(startValues[name]);
    let optional = addOptional(null, startValues, OPTIONAL_START_NAMES);
    if (end !== null) {
      const endValues = end as unknown as Values;
      record.push(dictionary.refer('ending', endValues, items));
      for (const name of END_NAMES) record.push(name === 'usage' ? countsOf(end.usage) : endValues[name]);
      optional = addOptional(optional, endValues, OPTIONAL_END_NAMES);
    }
    if (optional !== null) record.push(optional);
    items.push(record);
    this.records += 1;
  }

  json(): string {
    return JSON.stringify(this.items);
  }
}

function countsOf(usage: Usage | null): readonly (number | null)[] | null {
  return usage === null ? null : USAGE_NAMES.map((name) => usage[name]);
}

/** By name, with those before, what a record has of these optional fields; null: nothing. */
function addOptional(
  before: Record<string, unknown> | null,
  values: Values,
  names: readonly FieldName[],
): Record<string, unknown> | null {
  let optional = before;
  for (const name of names) {
    const value = values[name];
    if (isAbsent(value)) continue;
    optional ??= {};
    optional[name] = value;
  }
  return optional;
}

function isAbsent(value: unknown): boolean {
  return value == null || value === false || (Array.isArray(value) && value.length === 0);
}

interface ReadEntry {
  readonly part: DictionaryPart;
  readonly values: Values;
}

/** The records of a frame that is parsed; null when it is none that this version knows. */
export function decodeFrame(frame: unknown): ExecutionRecord[] | null {
  if (!Array.isArray(frame)) return null;
  const dictionary: ReadEntry[] = [];
  const records: ExecutionRecord[] = [];
  for (const item of frame as readonly unknown[]) {
    if (!Array.isArray(item)) return null;
    if (typeof item[0] === 'string') {
      const entry = decodeEntry(item);
      if (entry === null) return null;
      dictionary.push(entry);
    } else {
      const record = decodeRecord(item, dictionary);
      if (record === null) return null;
      records.push(record);
    }
  }
  return records.length === 0 ? null : records;
}

function decodeEntry([part, ...values]: readonly unknown[]): ReadEntry | null {
  if (part !== 'caller' && part !== 'deployment' && part !== 'ending') return null;
  const names = ENTRY_NAMES[part];
  if (values.length !== names.length) return null;
  return { part, values: Object.fromEntries(names.map((name, index) => [name, values[index]])) };
}

function decodeRecord(items: readonly unknown[], dictionary: readonly ReadEntry[]): ExecutionRecord | null {
  const isTerminal = items.length >= TERMINAL_LENGTH;
  const length = isTerminal ? TERMINAL_LENGTH : ENDING_AT;
  const caller = entryAt(dictionary, items[0], 'caller');
  const deployment = entryAt(dictionary, items[1], 'deployment');
  const ending = isTerminal ? entryAt(dictionary, items[ENDING_AT], 'ending') : NOTHING;
  const optional = items.length === length ? NOTHING : readOptional(items[length], isTerminal);
  if (items.length < length || items.length > length + 1) return null;
  if (caller === null || deployment === null || ending === null || optional === null) return null;
  const record: Record<string, unknown> = {
    type: isTerminal ? 'terminal' : 'admitted',
    ...caller,
    ...deployment,
    ...ending,
  };
  for (const [index, name] of START_NAMES.entries()) record[name] = items[START_AT + index];
  if (isTerminal)
    for (const [index, name] of END_NAMES.entries()) record[name] = decodeValue(name, items[END_AT + index]);
  Object.assign(record, optional);
  const isIdentified = typeof record['id'] === 'string' && typeof record['admittedAtMs'] === 'number';
  return isIdentified ? (record as unknown as ExecutionRecord) : null;
}

function decodeValue(name: FieldName, value: unknown): unknown {
  if (name !== 'usage' || !Array.isArray(value)) return value;
  return Object.fromEntries(USAGE_NAMES.map((count, index) => [count, value[index]]));
}

const NOTHING: Values = {};

function entryAt(dictionary: readonly ReadEntry[], number: unknown, part: DictionaryPart): Values | null {
  const entry = typeof number === 'number' ? dictionary[number] : undefined;
  return entry?.part === part ? entry.values : null;
}

const ADMITTED_OPTIONAL: ReadonlySet<string> = new Set(OPTIONAL_START_NAMES);
const TERMINAL_OPTIONAL: ReadonlySet<string> = new Set(OPTIONAL_NAMES);

/** null: it names a field that this version does not know, whose value would be lost. */
function readOptional(values: unknown, isTerminal: boolean): Values | null {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return null;
  const known = isTerminal ? TERMINAL_OPTIONAL : ADMITTED_OPTIONAL;
  return Object.keys(values).every((name) => known.has(name)) ? (values as Values) : null;
}
