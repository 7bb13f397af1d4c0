// A piece of a reply in another provider's form: its document, a body or the data of an event, is written anew.

import { isObject, type Json } from './json-fields.ts';

/** Turns a document of the imitated API into the provider's own form. */
export type Dress = (document: Json) => Json;

export function dressedText(text: string, dress: Dress | undefined): string {
  if (dress === undefined) return text;
  const isBody = text.startsWith('{');
  const at = isBody ? 0 : /^data: (?=\{)/m.exec(text);
  if (at === null) return text;
  const start = at === 0 ? 0 : at.index + at[0].length;
  const end = isBody ? text.length : text.indexOf('\n', start);
  const document: unknown = JSON.parse(text.slice(start, end));
  return isObject(document) ? `${text.slice(0, start)}${JSON.stringify(dress(document))}${text.slice(end)}` : text;
}
