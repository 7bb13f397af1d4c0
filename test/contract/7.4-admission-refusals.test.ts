// Spec 7.4: admission refusals, kind x route x form: status, where the code is, what stands at the top level. And an
// own provider key that cannot serve.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { type EnvelopeName, renderRefusal } from '../../src/domain/refusals/render.ts';
import { refusalBody } from '../support/refusal-body.ts';

interface Row {
  readonly refusal: Refusal;
  readonly status: number;
  readonly openaiType: string;
  readonly messagesType: string;
  /** Beside `error` (and `message` when flat). */
  readonly fields: object;
  readonly retryAfter: string | undefined;
}

const RESULT = { scope: 'organization', kind: 'budget', window: 'month', limit: '100.00', used: '100.00' };

function credit(refusal: Refusal, status: number, retryable: boolean, retryAfter?: string): Row {
  const urls = {
    balance_url: 'https://gate.test/v1/billing/credits',
    top_up_url: 'https://gate.test/v1/billing/deposits',
  };
  return {
    refusal,
    status,
    openaiType: 'billing_error',
    messagesType: 'billing_error',
    fields: { billing: { code: refusal.kind, retryable, ...urls } },
    retryAfter,
  };
}

const ROWS: readonly Row[] = [
  credit({ kind: 'insufficient_credit' }, 402, false),
  credit({ kind: 'billing_frozen' }, 403, false),
  credit({ kind: 'not_safely_billable', field: 'max_tokens' }, 422, false),
  credit({ kind: 'billing_unavailable' }, 503, true, '2'),
  credit({ kind: 'principal_provisioning' }, 503, true, '2'),
  {
    refusal: { kind: 'usage_limit_exceeded', retryAfterMs: 90_500, result: RESULT },
    status: 429,
    openaiType: 'rate_limit_error',
    messagesType: 'rate_limit_error',
    fields: { retryable: false, retry_after_seconds: 91, result: RESULT },
    retryAfter: '91',
  },
  {
    refusal: { kind: 'usage_limit_exceeded' },
    status: 429,
    openaiType: 'rate_limit_error',
    messagesType: 'rate_limit_error',
    fields: { retryable: false },
    retryAfter: undefined,
  },
  {
    refusal: { kind: 'rate_limit', retryAfterMs: 1500 },
    status: 429,
    openaiType: 'rate_limit_error',
    messagesType: 'rate_limit_error',
    fields: { retryable: true, retry_after_seconds: 2 },
    retryAfter: '2',
  },
  {
    refusal: { kind: 'concurrency_limit' },
    status: 429,
    openaiType: 'rate_limit_error',
    messagesType: 'rate_limit_error',
    fields: { retryable: true, retry_after_seconds: 1 },
    retryAfter: '1',
  },
  {
    refusal: { kind: 'upstream_cooldown', retryAfterMs: 30_000 },
    status: 429,
    openaiType: 'rate_limit_error',
    messagesType: 'rate_limit_error',
    fields: { retryable: true, retry_after_seconds: 30 },
    retryAfter: '30',
  },
  {
    refusal: { kind: 'traffic_token_bound_required', field: 'max_tokens' },
    status: 422,
    openaiType: 'invalid_request_error',
    messagesType: 'invalid_request_error',
    fields: { retryable: false },
    retryAfter: undefined,
  },
  {
    refusal: { kind: 'traffic_capacity_unavailable' },
    status: 503,
    openaiType: 'server_error',
    messagesType: 'api_error',
    fields: { retryable: true, retry_after_seconds: 2 },
    retryAfter: '2',
  },
];

function render(
  refusal: Refusal,
  envelope: EnvelopeName,
  admissionForm?: 'flat' | 'dialect',
): { status: number; retryAfter: string | undefined; body: Record<string, unknown> } {
  const context = {
    requestId: 'r',
    publicUrl: 'https://gate.test',
    ...(admissionForm === undefined ? {} : { admissionForm }),
  };
  const rendered = renderRefusal(refusal, envelope, context);
  const retryAfter = rendered.headers.find(([name]) => name === 'retry-after')?.[1];
  return { status: rendered.status, retryAfter, body: refusalBody(rendered.body) };
}

for (const { refusal, status, openaiType, messagesType, fields, retryAfter } of ROWS) {
  const code = refusal.kind;
  const param = 'field' in refusal ? refusal.field : null;

  describe(`${code} (${JSON.stringify(refusal)})`, () => {
    for (const envelope of ['chat', 'openai', 'messages'] as const) {
      test(`flat, the default, on a ${envelope} route`, () => {
        const { body, ...rest } = render(refusal, envelope);
        assert.deepEqual(rest, { status, retryAfter });
        assert.equal(typeof body['message'], 'string');
        assert.deepEqual(body, { error: code, message: body['message'], ...fields });
      });
    }
    for (const envelope of ['chat', 'openai'] as const) {
      test(`in the dialect of a ${envelope} route`, () => {
        const { body, ...rest } = render(refusal, envelope, 'dialect');
        assert.deepEqual(rest, { status, retryAfter });
        const { message } = body['error'] as { message: string };
        assert.ok(message.length > 10);
        assert.deepEqual(body, { error: { message, type: openaiType, code, param }, ...fields });
      });
    }
    test('in the Messages dialect', () => {
      const { body, ...rest } = render(refusal, 'messages', 'dialect');
      assert.deepEqual(rest, { status, retryAfter });
      const { message } = body['error'] as { message: string };
      assert.deepEqual(body, { type: 'error', error: { type: messagesType, message, code }, ...fields });
    });
    test('flat on a route without a dialect, whatever the switch says', () => {
      const { body } = render(refusal, 'platform', 'dialect');
      assert.equal(body['error'], code);
    });
  });
}

/**
 * No admission refusal: it has one form, whatever the switch says. The table names no images and no systemone; those
 * follow 7.3 and 7.2.
 */
const BYOK_ROWS: readonly (readonly [routes: string, envelope: EnvelopeName, body: (message: string) => object])[] = [
  [
    'POST /v1/chat/completions',
    'chat',
    (message) => ({ error: { message, type: 'byok_key_unavailable', code: 'byok_key_unavailable', param: null } }),
  ],
  [
    'POST /v1/messages, /v1/messages/count_tokens',
    'messages',
    (message) => ({ type: 'error', error: { type: 'byok_key_unavailable', message } }),
  ],
  [
    'POST /v1/responses, stored responses, images',
    'openai',
    (message) => ({ error: { message, type: 'server_error', code: 'byok_key_unavailable', param: null } }),
  ],
  ['POST /v1/systemone', 'systemone', (message) => ({ detail: { error_type: 'byok_key_unavailable', message } })],
];

describe('byok_key_unavailable', () => {
  const message =
    'Your organization\'s own key for the provider "openai" could not serve this request. ' +
    'Ask an administrator of the organization to check the key, or to allow other keys when it fails.';
  for (const [routes, envelope, body] of BYOK_ROWS) {
    test(`${routes}: 503`, () => {
      for (const form of ['flat', 'dialect'] as const) {
        const rendered = render({ kind: 'byok_key_unavailable', provider: 'openai' }, envelope, form);
        assert.deepEqual(rendered, { status: 503, retryAfter: undefined, body: body(message) });
      }
    });
  }
});
