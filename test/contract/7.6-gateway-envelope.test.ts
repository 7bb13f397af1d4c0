// Spec 7.6: raised before a request reaches its route; the body is `{error: <string>}` whatever envelope the route has.
// Where the operator switched a route to its dialect, it is that dialect's error, so that SDKs show it in full.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { refusalBody } from '../support/refusal-body.ts';

type Row = readonly [Refusal, status: number, error: string, openaiType: string, messagesType: string, RegExp];

const ROWS: readonly Row[] = [
  [
    { kind: 'authentication_required' },
    401,
    'authentication required',
    'authentication_error',
    'authentication_error',
    /no API key.* "Authorization: Bearer KEY"/,
  ],
  [
    { kind: 'unauthorized' },
    401,
    'unauthorized',
    'authentication_error',
    'authentication_error',
    /^The API key is not valid: it is unknown, expired or revoked\. Check the key/,
  ],
  [
    { kind: 'scope_required' },
    400,
    'authorization scope required',
    'invalid_request_error',
    'invalid_request_error',
    /no active organization/,
  ],
  [{ kind: 'permission_denied' }, 403, 'permission denied', 'permission_error', 'permission_error', /inference key/],
  [
    { kind: 'authorization_unavailable' },
    502,
    'authorization unavailable',
    'server_error',
    'api_error',
    /cannot be checked at the moment/,
  ],
  [
    { kind: 'delegation_token_unavailable' },
    502,
    'delegation token unavailable',
    'server_error',
    'api_error',
    /^delegation token unavailable$/,
  ],
];

const ENVELOPES = ['gateway', 'platform', 'chat', 'openai', 'messages', 'systemone'] as const;
const IN_DIALECT: ReadonlySet<string> = new Set(['chat', 'openai', 'messages']);
const CONTEXT = { requestId: 'r', publicUrl: 'https://gate.test' } as const;

for (const [refusal, status, error, openaiType, messagesType, message] of ROWS) {
  for (const envelope of ENVELOPES) {
    for (const admissionForm of ['flat', 'dialect'] as const) {
      if (admissionForm === 'dialect' && IN_DIALECT.has(envelope)) continue;
      test(`${refusal.kind} on a route with the ${envelope} envelope, ${admissionForm}`, () => {
        const rendered = renderRefusal(refusal, envelope, { ...CONTEXT, admissionForm });
        assert.equal(rendered.status, status);
        assert.equal(rendered.body, JSON.stringify({ error, request_id: CONTEXT.requestId }));
      });
    }
  }

  test(`${refusal.kind} in the dialect has the same status and headers, and says what to do`, () => {
    for (const envelope of ['chat', 'openai', 'messages'] as const) {
      const flat = renderRefusal(refusal, envelope, CONTEXT);
      const rendered = renderRefusal(refusal, envelope, { ...CONTEXT, admissionForm: 'dialect' });
      assert.deepEqual([rendered.status, rendered.headers], [flat.status, flat.headers]);
      const body = refusalBody(rendered.body) as { error: { message: string } };
      assert.match(body.error.message, message);
      const said = body.error.message;
      assert.deepEqual(
        body,
        envelope === 'messages'
          ? { type: 'error', error: { type: messagesType, message: said } }
          : { error: { message: said, type: openaiType, code: refusal.kind, param: null } },
      );
    }
  });
}
