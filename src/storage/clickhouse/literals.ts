// Writes the values of a statement's parameters into its text, for the embedded engine: it runs statements with
// parameters one at a time in a process, whatever the connection, and others beside one another.

/** As the engine knows them: a name and a type. */
const PARAMETER = /\{(\w+):\s*([^{}]+)\}/g;
const ARRAY = /^Array\((\w+)\)$/;

const NUMBER_TYPES: ReadonlySet<string> = new Set(['UInt8', 'UInt16', 'UInt32', 'UInt64', 'Int64']);
const TEXT_TYPES: ReadonlySet<string> = new Set(['String', 'UUID', 'Date']);

/** The statement is wrong, whoever runs it and whenever. */
export class StatementWrong extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'StatementWrong';
  }
}

/**
 * A value is written in hexadecimal, so that nothing in it can be SQL, and read as its type by the engine. Parameters
 * within quotes are not expected. Throws StatementWrong for one without a value or of a type that is not listed above.
 */
export function checkedLiterals(sql: string, values: Readonly<Record<string, unknown>>): string {
  return sql.replace(PARAMETER, (parameter, name: string, type: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const elementType = ARRAY.exec(type)?.[1];
    if (elementType === undefined) return checkedLiteral(textOf(value, type), type);
    if (!Array.isArray(value)) throw new StatementWrong(`${parameter} has no array as its value`);
    const elements = value.map((element) => {
      const text = textOf(element, elementType);
      return TEXT_TYPES.has(elementType) ? `'${text.replace(/[\\']/g, '\\$&')}'` : text;
    });
    return checkedLiteral(`[${elements.join(',')}]`, type);
  });
}

function textOf(value: unknown, type: string): string {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint')
    throw new StatementWrong(`a parameter of type ${type} is no text and no number`);
  const text = String(value);
  if (NUMBER_TYPES.has(type) && !/^-?\d+$/.test(text)) throw new StatementWrong(`not an integer: ${text}`);
  if (!NUMBER_TYPES.has(type) && !TEXT_TYPES.has(type))
    throw new StatementWrong(`no such type of a parameter: ${type}`);
  return text;
}

function checkedLiteral(text: string, type: string): string {
  const hexadecimal = `unhex('${Buffer.from(text).toString('hex')}')`;
  return type === 'String' ? hexadecimal : `CAST(${hexadecimal}, '${type}')`;
}
