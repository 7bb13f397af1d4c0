// The text of a policy's definition in its editor: writes it as indented JSON, reads it back, and says where it is not
// valid JSON.

type ReadDefinition<T> =
  | { readonly ok: true; readonly definition: T }
  | { readonly ok: false; readonly problem: string };

/** The order of members in the documentation; other members follow. The database does not keep the order. */
const ORDER = [
  'name',
  'id',
  'description',
  'classifier',
  'tiers',
  'rules',
  'model',
  'models',
  'fallback_tier',
  'kinds',
  'detect',
  'stage',
  'action',
];
const LINE_MAX = 100;

/** Objects and lists that fit within a line are written on one line. The outermost never is. */
export function writeDefinition(definition: object): string {
  return written(definition, '');
}

function written(value: unknown, indent: string): string {
  const inline = oneLine(value);
  if (indent.length + inline.length <= LINE_MAX && indent !== '') return inline;
  if (typeof value !== 'object' || value === null) return inline;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((one) => inner + written(one, inner))
    : membersOf(value).map(([name, one]) => `${inner}${JSON.stringify(name)}: ${written(one, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

function oneLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  const members = membersOf(value).map(([name, one]) => `${JSON.stringify(name)}: ${oneLine(one)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

function membersOf(value: object): [string, unknown][] {
  const placeOf = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .toSorted(([one], [other]) => placeOf(one) - placeOf(other));
}

/** Checks only that the text is a JSON object. The gateway checks the definition. */
export function readDefinition<T extends object>(text: string): ReadDefinition<T> {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (fault) {
    return { ok: false, problem: `${(fault as Error).message}${lineOf(text, (fault as Error).message)}` };
  }
  return typeof read === 'object' && read !== null && !Array.isArray(read)
    ? { ok: true, definition: read as T }
    : { ok: false, problem: 'It must be an object: { ... }' };
}

/** The line of a syntax error, if the engine's message has only the position. */
function lineOf(text: string, message: string): string {
  const position = /position (\d+)/.exec(message)?.[1];
  if (position === undefined || message.includes('line ')) return '';
  return ` (line ${text.slice(0, Number(position)).split('\n').length})`;
}
