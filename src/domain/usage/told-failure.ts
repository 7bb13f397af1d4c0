// A provider's own word, in a reply with status 200, that it has failed.

import { asObject, type JsonObject, parseObject } from './countable-text.ts';
import { beginsLikeEvents } from './event-payloads.ts';

/**
 * Of a reply, or of the data of its last event. Where all is well some write `"error":null`, or an error of which
 * nothing is said.
 */
export function tellsFailure({ error, status }: JsonObject): boolean {
  return saysSomething(error) || Object.values(asObject(error) ?? {}).some(saysSomething) || status === 'failed';
}

function saysSomething(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || (typeof value === 'number' && value !== 0);
}

const JSON_BEGINNING = /^\s*[[{]/;

/**
 * `isWhole`: it ended by itself, and is no stream. What is no JSON then is an error page of a proxy in front of the
 * provider.
 */
export function bodyTellsFailure(body: string, isWhole: boolean): boolean {
  const reply = parseObject(body);
  if (reply !== null) return tellsFailure(reply);
  return isWhole && !JSON_BEGINNING.test(body) && !beginsLikeEvents(body);
}
