// The body of a refusal as its envelope has it: every envelope has the request's id beside what the spec says of it,
// which is checked here once.

import assert from 'node:assert/strict';

/** The body without the id. `id`: the one that it must have; any by default. */
export function refusalBody(text: string, id?: string): Record<string, unknown> {
  const { request_id: requestId, ...body } = JSON.parse(text) as Record<string, unknown>;
  assert.ok(typeof requestId === 'string' && requestId !== '', `a refusal without an id: ${text}`);
  if (id !== undefined) assert.equal(requestId, id);
  return body;
}
