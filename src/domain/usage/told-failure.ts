// Recognizes a reply with status 200 in which the provider says that it failed.

import { asObject, type JsonObject, parseObject } from './countable-text.ts';
import { beginsLikeEvents } from './event-payloads.ts';

/**
 * The parameter is a reply, or the data of its last event. Some providers write `"error":null`, or an error object
 * without content, when nothing failed.
 */
export function tellsFailure({ error, status }: JsonObject): boolean {
  return saysSomething(error) || Object.values(asObject(error) ?? {}).some(saysSomething) || status === 'failed';
}

function saysSomething(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || (typeof value === 'number' && value !== 0);
}

const JSON_BEGINNING = /^\s*[[{]/;

/**
 * `isWhole`: the reply ended by itself and is not a stream. Such a reply that is not JSON is the error page of a proxy
 * in front of the provider.
 */
export function bodyTellsFailure(body: string, isWhole: boolean): boolean {
  const reply = parseObject(body);
  if (reply !== null) return tellsFailure(reply);
  return isWhole && !JSON_BEGINNING.test(body) && !beginsLikeEvents(body);
}
