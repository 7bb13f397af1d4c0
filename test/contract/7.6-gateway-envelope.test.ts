// Spec 7.6: raised before a request reaches its route; the body is `{error: <string>}` whatever envelope the route has.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';

const ROWS: readonly (readonly [Refusal, number, string])[] = [
  [{ kind: 'authentication_required' }, 401, 'authentication required'],
  [{ kind: 'unauthorized' }, 401, 'unauthorized'],
  [{ kind: 'scope_required' }, 400, 'authorization scope required'],
  [{ kind: 'permission_denied' }, 403, 'permission denied'],
  [{ kind: 'authorization_unavailable' }, 502, 'authorization unavailable'],
  [{ kind: 'delegation_token_unavailable' }, 502, 'delegation token unavailable'],
];

for (const [refusal, status, error] of ROWS) {
  for (const envelope of ['gateway', 'platform', 'chat', 'openai', 'messages', 'systemone'] as const) {
    test(`${refusal.kind} on a route with the ${envelope} envelope`, () => {
      const rendered = renderRefusal(refusal, envelope, {
        requestId: 'r',
        publicUrl: 'https://gate.test',
        admissionForm: 'dialect',
      });
      assert.equal(rendered.status, status);
      assert.equal(rendered.body, JSON.stringify({ error }));
    });
  }
}
