// A definition as people edit it: JSON, indented, and what is wrong with it before it is sent.

type ReadDefinition<T> =
  | { readonly ok: true; readonly definition: T }
  | { readonly ok: false; readonly problem: string };

export function writeDefinition(definition: object): string {
  return JSON.stringify(definition, null, 2);
}

/** Whether it is a good definition is the gateway's to say. */
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

/** Engines name the position; people look for the line. */
function lineOf(text: string, message: string): string {
  const position = /position (\d+)/.exec(message)?.[1];
  if (position === undefined || message.includes('line ')) return '';
  return ` (line ${text.slice(0, Number(position)).split('\n').length})`;
}
