// Writes the values of a statement's parameters into its text, for the embedded engine. The engine runs statements with
// parameters one at a time in the whole process, while statements without parameters of different connections run at
// the same time.

/** A parameter in ClickHouse's syntax: a name and a type. */
const PARAMETER = /\{(\w+):\s*([^{}]+)\}/g;
const ARRAY = /^Array\((\w+)\)$/;

const NUMBER_TYPES: ReadonlySet<string> = new Set(['UInt8', 'UInt16', 'UInt32', 'UInt64', 'Int64']);
const TEXT_TYPES: ReadonlySet<string> = new Set(['String', 'UUID', 'Date']);

/** The statement has a parameter without a value of its type. It would fail every time. */
export class InvalidStatement extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'InvalidStatement';
  }
}

/**
 * Each value is written in hexadecimal, so that no part of it can be SQL, and the engine casts it to its type.
 * Parameters within quotes are not expected. Throws InvalidStatement for a parameter without a value, or of a type that
 * is not listed above.
 */
export function checkedLiterals(sql: string, values: Readonly<Record<string, unknown>>): string {
  return sql.replace(PARAMETER, (parameter, name: string, type: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const elementType = ARRAY.exec(type)?.[1];
    if (elementType === undefined) return checkedLiteral(textOf(value, type), type);
    if (!Array.isArray(value)) throw new InvalidStatement(`${parameter} has no array as its value`);
    const elements = value.map((element) => {
      const text = textOf(element, elementType);
      return TEXT_TYPES.has(elementType) ? `'${text.replace(/[\\']/g, '\\$&')}'` : text;
    });
    return checkedLiteral(`[${elements.join(',')}]`, type);
  });
}

function textOf(value: unknown, type: string): string {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint')
    throw new InvalidStatement(`a parameter of type ${type} is no text and no number`);
  const text = String(value);
  if (NUMBER_TYPES.has(type) && !/^-?\d+$/.test(text)) throw new InvalidStatement(`not an integer: ${text}`);
  if (!NUMBER_TYPES.has(type) && !TEXT_TYPES.has(type))
    throw new InvalidStatement(`no such type of a parameter: ${type}`);
  return text;
}

function checkedLiteral(text: string, type: string): string {
  const hexadecimal = `unhex('${Buffer.from(text).toString('hex')}')`;
  return type === 'String' ? hexadecimal : `CAST(${hexadecimal}, '${type}')`;
}
