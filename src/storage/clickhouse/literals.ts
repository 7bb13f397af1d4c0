// Writes the values of a statement's parameters into its text, for the embedded engine: it runs statements with
// parameters one at a time in a process, whatever the connection, and others beside one another.

/** A value is written in hexadecimal, so that nothing in it can be SQL, and read as its type by the engine. */
const PARAMETER = /\{(\w+):\s*([^{}]+)\}/g;
const ARRAY = /^Array\((\w+)\)$/;

const NUMBER_TYPES: ReadonlySet<string> = new Set(['UInt8', 'UInt16', 'UInt32', 'UInt64', 'Int64']);
const TEXT_TYPES: ReadonlySet<string> = new Set(['String', 'UUID', 'Date']);

/** Throws for a parameter without a value, and for a type that no statement has had before. */
export function checkedLiterals(sql: string, values: Readonly<Record<string, unknown>>): string {
  return sql.replace(PARAMETER, (parameter, name: string, type: string) => {
    const value = values[name];
    if (value === undefined || value === null) throw new Error(`the parameter ${parameter} has no value`);
    const elementType = ARRAY.exec(type)?.[1];
    if (elementType === undefined) return checkedLiteral(textOf(value, type), type);
    if (!Array.isArray(value)) throw new Error(`the parameter ${parameter} has a value that is no array`);
    const elements = value.map((element) => {
      const text = textOf(element, elementType);
      return TEXT_TYPES.has(elementType) ? `'${text.replace(/[\\']/g, '\\$&')}'` : text;
    });
    return checkedLiteral(`[${elements.join(',')}]`, type);
  });
}

function textOf(value: unknown, type: string): string {
  const text = String(value);
  if (NUMBER_TYPES.has(type) && !/^-?\d+$/.test(text)) throw new Error(`not an integer: ${text}`);
  if (!NUMBER_TYPES.has(type) && !TEXT_TYPES.has(type)) throw new Error(`no such type of a parameter: ${type}`);
  return text;
}

function checkedLiteral(text: string, type: string): string {
  const hexadecimal = `unhex('${Buffer.from(text).toString('hex')}')`;
  return type === 'String' ? hexadecimal : `CAST(${hexadecimal}, '${type}')`;
}
