// Reads the body of a refusal in its envelope. Every envelope has the request's id besides the members of the spec,
// which is checked here for all tests.

import assert from 'node:assert/strict';

/** Returns the body without the id. `id`: the expected id; by default any. */
export function refusalBody(text: string, id?: string): Record<string, unknown> {
  const { request_id: requestId, ...body } = JSON.parse(text) as Record<string, unknown>;
  assert.ok(typeof requestId === 'string' && requestId !== '', `a refusal without an id: ${text}`);
  if (id !== undefined) assert.equal(requestId, id);
  return body;
}
