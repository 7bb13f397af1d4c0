// Spec 7.2: `{type: "error", error: {type, message}}`; the type is the table's for the status.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messagesErrorType } from '../../src/domain/refusals/envelopes/messages.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { refusalBody } from '../support/refusal-body.ts';

const ROWS: readonly (readonly [number, string])[] = [
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [405, 'invalid_request_error'],
  [413, 'request_too_large'],
  [422, 'invalid_request_error'],
  [429, 'rate_limit_error'],
  [500, 'api_error'],
  [502, 'api_error'],
  [503, 'api_error'],
];

for (const [status, type] of ROWS) test(`${status}: ${type}`, () => assert.equal(messagesErrorType(status), type));

test('the body', () => {
  const { body, status } = renderRefusal({ kind: 'unknown_model', model: 'no/such' }, 'messages', {
    requestId: 'req-1',
    publicUrl: 'https://gate.test',
  });
  assert.equal(status, 404);
  const message =
    'The model "no/such" does not exist or is not available to you. GET /v1/models lists the models you can use.';
  assert.deepEqual(refusalBody(body, 'req-1'), { type: 'error', error: { type: 'not_found_error', message } });
});
