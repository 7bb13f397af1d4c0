// Rewrites a piece of a reply into another provider's form: its document is a body or the data of an event.

import { isObject, type Json } from './json-fields.ts';

/** Turns a document of the imitated API into the provider's own form. */
export type RewriteDocument = (document: Json) => Json;

export function rewrittenText(text: string, rewriteDocument: RewriteDocument | undefined): string {
  if (rewriteDocument === undefined) return text;
  const isBody = text.startsWith('{');
  const at = isBody ? 0 : /^data: (?=\{)/m.exec(text);
  if (at === null) return text;
  const start = at === 0 ? 0 : at.index + at[0].length;
  const end = isBody ? text.length : text.indexOf('\n', start);
  const document: unknown = JSON.parse(text.slice(start, end));
  return isObject(document)
    ? `${text.slice(0, start)}${JSON.stringify(rewriteDocument(document))}${text.slice(end)}`
    : text;
}
