// Encodes and decodes the records of a spool frame: a JSON array of an instant, dictionary entries and records, made
// from the table of fields.
//
//   [ 1795183858776,                                    the frame's origin: other instants are offsets from it, in ms
//     ["caller", ...], ["deployment", ...],             entry 0, entry 1
//     [0, 1, ...start, {...optional}],                  an admitted record: numbers of its caller and deployment
//     ["ending", ...],                                  entry 2
//     [0, 1, ...start, 2, ...end, {...optional}], ... ] a terminal record: it has the number of its ending too
//
// A record refers to earlier entries of its own frame. Values are in the order of the table. The values of optional
// fields are in an object after the others, by name; a record without optional values has no such object. Every request
// writes two records, and most of their bytes would repeat values of other records, so the dictionary makes them short.

import type { ExecutionEnd, ExecutionRecord, ExecutionStart } from './execution-record.ts';
import { FIELD_ROWS, FIELDS, type FieldName, type Part, USAGE_ROWS, type UsageCount } from './fields.ts';

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

/** The layout of a record: two references, the values of the start, one reference, the values of the end. */
const START_AT = 2;
const ENDING_AT = START_AT + START_NAMES.length;
const END_AT = ENDING_AT + 1;
const TERMINAL_LENGTH = END_AT + END_NAMES.length;

/**
 * Makes a function from an expression over its parameters. Readers and writers of records are compiled from the table
 * once, and are then the code that a person would write for these fields. A loop over the field names takes twice as
 * long (`benchmarks/micro/records.bench.ts`).
 */
function compile<Compiled>(parameters: string, expression: string): Compiled {
  // oxlint-disable-next-line typescript/no-implied-eval -- only names of the table above are in it
  const made = new Function('isAbsent', `return (${parameters}) => ${expression};`) as (
    absent: typeof isAbsent,
  ) => Compiled;
  return made(isAbsent);
}

/** Source text of the values of these fields in the frame. An instant is stored as its offset from `originMs`. */
function itemsOf(part: 'start' | 'end', names: readonly FieldName[]): string {
  const items = names.map((name) => {
    const value = `${part}.${name}`;
    const { kind } = FIELDS[name].type;
    if (kind === 'instant') return `${value} - originMs`;
    if (kind !== 'usage') return value;
    return `${value} === null ? null : [${USAGE_NAMES.map((count) => `${value}.${count}`).join(', ')}]`;
  });
  return items.join(', ');
}

type ItemOf = (
  originMs: number,
  caller: number,
  deployment: number,
  start: Values,
  ending: number,
  end: Values,
) => unknown[];
const admittedItem: ItemOf = compile(
  'originMs, caller, deployment, start',
  `[caller, deployment, ${itemsOf('start', START_NAMES)}]`,
);
const terminalItem: ItemOf = compile(
  'originMs, caller, deployment, start, ending, end',
  `[caller, deployment, ${itemsOf('start', START_NAMES)}, ending, ${itemsOf('end', END_NAMES)}]`,
);
/** Returns `others` with the optional fields of `names` that a record has; null: neither has any. */
const membersOf = (names: readonly FieldName[]): ((values: Values, others: Values | null) => Values | null) => {
  const statements = names.map((name) => {
    const value = `one.${name}`;
    return `if (${value} != null && !isAbsent(${value})) (others ??= {}).${name} = ${value};`;
  });
  return compile('one, others', `{ ${statements.join(' ')} return others; }`);
};
const startMembers = membersOf(OPTIONAL_START_NAMES);
const endMembers = membersOf(OPTIONAL_END_NAMES);
const sameOf = (names: readonly FieldName[]): ((one: Values, other: Values) => boolean) =>
  compile('one, other', names.map((name) => `one.${name} === other.${name}`).join(' && '));

function isAbsent(value: unknown): boolean {
  return value == null || value === false || (Array.isArray(value) && value.length === 0);
}

/** How entries of one part are written, and when two of them are equal. */
interface EntryKind {
  readonly itemOf: (values: Values) => unknown[];
  readonly isSame: (one: Values, other: Values) => boolean;
}

function entryKind(part: DictionaryPart): EntryKind {
  const values = ENTRY_NAMES[part].map((name) => `values.${name}`);
  return { itemOf: compile('values', `['${part}', ${values.join(', ')}]`), isSame: sameOf(ENTRY_NAMES[part]) };
}

const CALLER = entryKind('caller');
const DEPLOYMENT = entryKind('deployment');
const ENDING = entryKind('ending');

/** The dictionary entries of one part in an open frame. */
class Dictionary {
  private readonly kind: EntryKind;
  private readonly entries: { readonly values: Values; readonly number: number }[] = [];

  constructor(kind: EntryKind) {
    this.kind = kind;
  }

  /** The number of the entry with these values; null: none has them. The latest entry is the likeliest. */
  numberOf(values: Values): number | null {
    const { entries, kind } = this;
    for (let index = entries.length - 1; index >= 0; index--) {
      const entry = entries[index];
      if (entry !== undefined && kind.isSame(entry.values, values)) return entry.number;
    }
    return null;
  }

  /** Adds an entry and returns its item in the frame. */
  add(values: Values, number: number): unknown[] {
    this.entries.push({ values, number });
    return this.kind.itemOf(values);
  }
}

/**
 * A frame that is being put together: its items so far, and its dictionary. The frame is turned into text all at once,
 * because a text that grows record by record costs twice as much time and ten times the memory.
 */
export class OpenFrame {
  records = 0;
  readonly originMs: number;
  readonly items: unknown[];
  private readonly callers = new Dictionary(CALLER);
  private readonly deployments = new Dictionary(DEPLOYMENT);
  private readonly endings = new Dictionary(ENDING);
  private entryCount = 0;

  /** `originMs`: an instant near those of the records, so that their offsets are short. */
  constructor(originMs: number) {
    this.originMs = originMs;
    this.items = [originMs];
  }

  /** Adds an admitted record, or a terminal one if `end` is given, after the dictionary entries that it needs first. */
  add(start: ExecutionStart, end: ExecutionEnd | null): void {
    const { originMs } = this;
    const startValues = start as unknown as Values;
    const endValues = (end ?? NOTHING) as Values;
    const caller = this.refer(this.callers, startValues);
    const deployment = this.refer(this.deployments, startValues);
    const ending = end === null ? -1 : this.refer(this.endings, endValues);
    const item = (end === null ? admittedItem : terminalItem)(
      originMs,
      caller,
      deployment,
      startValues,
      ending,
      endValues,
    );
    const members = endMembers(endValues, startMembers(startValues, null));
    if (members !== null) item.push(members);
    this.items.push(item);
    this.records += 1;
  }

  /** Returns the number of the entry with these values, and adds the entry if the frame lacks it. */
  private refer(dictionary: Dictionary, values: Values): number {
    const known = dictionary.numberOf(values);
    if (known !== null) return known;
    this.items.push(dictionary.add(values, this.entryCount));
    return this.entryCount++;
  }

  json(): string {
    return JSON.stringify(this.items);
  }
}

/** An entry or a record in its array form. */
type Item = readonly unknown[];

/** Returns the records of a frame, given as parsed JSON; null: this version cannot read the frame. */
export function decodeFrame(frame: unknown): ExecutionRecord[] | null {
  if (!Array.isArray(frame)) return null;
  const originMs: unknown = frame[0];
  if (typeof originMs !== 'number') return null;
  const dictionary: Item[] = [];
  const records: ExecutionRecord[] = [];
  for (let index = 1; index < frame.length; index++) {
    const item: unknown = frame[index];
    if (!Array.isArray(item)) return null;
    if (typeof item[0] === 'string') {
      if (!isEntry(item)) return null;
      dictionary.push(item);
    } else {
      const record = decodeRecord(item, dictionary, originMs);
      if (record === null) return null;
      records.push(record);
    }
  }
  return records.length === 0 ? null : records;
}

function isEntry({ 0: part, length }: Item): boolean {
  if (part !== 'caller' && part !== 'deployment' && part !== 'ending') return false;
  return length === ENTRY_AT + ENTRY_NAMES[part].length;
}

/** The index of an entry's first value, after the name of its part. */
const ENTRY_AT = 1;

/** Source text of a record's members that are stored in `item` from index `at` on. */
function membersFrom(names: readonly FieldName[], item: string, at: number): string {
  const members = names.map((name, index) => {
    const value = `${item}[${at + index}]`;
    const { kind } = FIELDS[name].type;
    if (kind === 'instant') return `${name}: typeof ${value} === 'number' ? originMs + ${value} : ${value}`;
    if (kind !== 'usage') return `${name}: ${value}`;
    const counts = USAGE_NAMES.map((count, place) => `${count}: ${value}[${place}]`);
    return `${name}: Array.isArray(${value}) ? { ${counts.join(', ')} } : ${value}`;
  });
  return members.join(', ');
}

/** Compiled from the table, so that all records have their fields in one order. This halves the cost of reading. */
type RecordOf = (originMs: number, caller: Item, deployment: Item, ending: Item, item: Item) => Record<string, unknown>;
const RECORD_PARAMETERS = 'originMs, caller, deployment, ending, item';
const ADMITTED_MEMBERS = [
  membersFrom(ENTRY_NAMES.caller, 'caller', ENTRY_AT),
  membersFrom(ENTRY_NAMES.deployment, 'deployment', ENTRY_AT),
  membersFrom(START_NAMES, 'item', START_AT),
].join(', ');
const TERMINAL_MEMBERS = [
  membersFrom(ENTRY_NAMES.ending, 'ending', ENTRY_AT),
  membersFrom(END_NAMES, 'item', END_AT),
].join(', ');
const admittedRecord: RecordOf = compile(RECORD_PARAMETERS, `({ type: 'admitted', ${ADMITTED_MEMBERS} })`);
const terminalRecord: RecordOf = compile(
  RECORD_PARAMETERS,
  `({ type: 'terminal', ${ADMITTED_MEMBERS}, ${TERMINAL_MEMBERS} })`,
);

function decodeRecord(item: Item, dictionary: readonly Item[], originMs: number): ExecutionRecord | null {
  const isTerminal = item.length >= TERMINAL_LENGTH;
  const length = isTerminal ? TERMINAL_LENGTH : ENDING_AT;
  const caller = entryAt(dictionary, item[0], 'caller');
  const deployment = entryAt(dictionary, item[1], 'deployment');
  const ending = isTerminal ? entryAt(dictionary, item[ENDING_AT], 'ending') : NO_ITEM;
  if (item.length < length || item.length > length + 1) return null;
  if (caller === null || deployment === null || ending === null) return null;
  const record = (isTerminal ? terminalRecord : admittedRecord)(originMs, caller, deployment, ending, item);
  if (item.length > length) {
    const optional = readOptional(item[length], isTerminal);
    if (optional === null) return null;
    Object.assign(record, optional);
  }
  const isIdentified = typeof record['id'] === 'string' && typeof record['admittedAtMs'] === 'number';
  return isIdentified ? (record as unknown as ExecutionRecord) : null;
}

const NOTHING: Values = {};
const NO_ITEM: Item = [];

function entryAt(dictionary: readonly Item[], number: unknown, part: DictionaryPart): Item | null {
  const entry = typeof number === 'number' ? dictionary[number] : undefined;
  return entry?.[0] === part ? entry : null;
}

const ADMITTED_OPTIONAL: ReadonlySet<string> = new Set(OPTIONAL_START_NAMES);
const TERMINAL_OPTIONAL: ReadonlySet<string> = new Set(OPTIONAL_NAMES);

/** null: the object names a field that this version does not know, whose value would be lost. */
function readOptional(values: unknown, isTerminal: boolean): Values | null {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return null;
  const known = isTerminal ? TERMINAL_OPTIONAL : ADMITTED_OPTIONAL;
  return Object.keys(values).every((name) => known.has(name)) ? (values as Values) : null;
}
