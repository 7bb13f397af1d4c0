// A provider's own word, in a reply with status 200, that it has failed.

import { asObject, type JsonObject } from './countable-text.ts';

/** Of a reply, or of the data of its last event. Where all is well some write `"error":null`, or nothing in it. */
export function tellsFailure({ error, status }: JsonObject): boolean {
  return asObject(error) !== null || (typeof error === 'string' && error !== '') || status === 'failed';
}
