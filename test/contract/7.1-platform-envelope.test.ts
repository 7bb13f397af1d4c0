// Spec 7.1: `code` is an opaque identifier, `error` a summary, `message` optional detail, `request_id` always there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { EVERY_REFUSAL } from '../support/every-refusal.ts';

interface PlatformBody {
  code: string;
  error: string;
  message?: string;
  request_id: string;
}

function render(refusal: Refusal, requestId = 'req-1'): PlatformBody {
  return JSON.parse(
    renderRefusal(refusal, 'platform', { requestId, publicUrl: 'https://gate.test' }).body,
  ) as PlatformBody;
}

const ON_PLATFORM_ROUTES = EVERY_REFUSAL.filter(
  ({ kind }) => REFUSAL_RULES[kind].family === 'request' || REFUSAL_RULES[kind].family === 'service',
);

test('has these fields and no others', () => {
  assert.deepEqual(render({ kind: 'not_found' }), {
    code: render({ kind: 'not_found' }).code,
    error: 'There is nothing under this id that this credential may see.',
    message: 'Check the id, and that the key belongs to the organization and payer that made it.',
    request_id: 'req-1',
  });
  assert.deepEqual(Object.keys(render({ kind: 'not_found' })), ['code', 'error', 'message', 'request_id']);
  assert.deepEqual(Object.keys(render({ kind: 'invalid_field', field: 'limit', reason: 'it must be a number' })), [
    'code',
    'error',
    'request_id',
  ]);
});

test('code is the same for a kind every time, another for another kind, and names nothing', () => {
  const codes = ON_PLATFORM_ROUTES.map((refusal) => render(refusal).code);
  // Two kinds share a code that the spec publishes.
  const named = ON_PLATFORM_ROUTES.map(({ kind }) => REFUSAL_RULES[kind].code ?? kind);
  assert.equal(new Set(codes).size, new Set(named).size);
  for (const [index, { kind }] of ON_PLATFORM_ROUTES.entries()) {
    // What guardrails refuse has no route here; its code is published all the same (spec 7.7).
    if (kind !== 'owner_floor' && !kind.startsWith('guardrail_')) assert.match(codes[index] ?? '', /^[0-9a-f]{8}$/);
  }
  assert.deepEqual(
    ON_PLATFORM_ROUTES.map((refusal) => render(refusal, 'other').code),
    codes,
  );
});

test('but for the one code that the spec publishes (spec 7.8)', () => {
  const rendered = renderRefusal({ kind: 'owner_floor' }, 'platform', {
    requestId: 'req-1',
    publicUrl: 'https://gate.test',
  });
  assert.equal(rendered.status, 409);
  assert.equal((JSON.parse(rendered.body) as PlatformBody).code, 'owner_floor');
});
