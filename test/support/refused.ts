// Reads the result of an operation below HTTP: done, or how it was refused.

import assert from 'node:assert/strict';
import { isRefused, type Refused } from '../../src/domain/refusals/refused.ts';

export function done<T>(result: T | Refused): T {
  if (isRefused(result)) assert.fail(JSON.stringify(result));
  return result as T;
}

export async function refusal(result: Promise<unknown>): Promise<string> {
  const found = await result;
  assert.ok(isRefused(found), `not refused: ${JSON.stringify(found)}`);
  return found.refused;
}
