// Spec 7.5: errors of /v1/systemone. The endpoint's own are `{detail: {error_type, message}}`; credit, budget and
// traffic refusals are flat.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkQuestions } from '../../src/domain/evaluation/check-questions.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { refuseWithoutQuestions } from '../../src/generation/dialects/systemone.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { refusalBody } from '../support/refusal-body.ts';

const CONTEXT = { requestId: 'req-1', publicUrl: 'https://gate.test' };

const HANDLER_ROWS: readonly (readonly [Refusal, number, string, 'true' | 'false'])[] = [
  // Served by a provider of another kind: before anything is forwarded.
  [{ kind: 'api_not_supported', model: 'openai/gpt', api: 'systemone' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'invalid_json' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'invalid_utf8' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'body_not_an_object' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'body_too_deep' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'duplicate_key', key: 'questions' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'missing_model' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'model_not_a_string' }, 400, 'invalid_request_error', 'false'],
  [{ kind: 'unknown_model', model: 'no/such' }, 404, 'not_found_error', 'false'],
  [{ kind: 'body_too_large', limitBytes: 10 }, 413, 'request_too_large', 'false'],
  [{ kind: 'context_length_exceeded', contextLength: 32_000 }, 413, 'request_too_large', 'false'],
  [{ kind: 'unsupported_media_type' }, 415, 'invalid_request_error', 'false'],
  [{ kind: 'internal_error' }, 500, 'api_error', 'false'],
  [{ kind: 'upstream_unreachable' }, 502, 'api_error', 'true'],
  [{ kind: 'upstream_timeout' }, 502, 'api_error', 'true'],
  [{ kind: 'draining' }, 503, 'api_error', 'true'],
];

describe('the handler’s own errors', () => {
  for (const [refusal, status, type, shouldRetry] of HANDLER_ROWS) {
    test(`${refusal.kind}: ${status} ${type}`, () => {
      for (const admissionForm of ['flat', 'dialect'] as const) {
        const rendered = renderRefusal(refusal, 'systemone', { ...CONTEXT, admissionForm });
        assert.equal(rendered.status, status);
        const body = refusalBody(rendered.body) as { detail: { message: string } };
        assert.ok(body.detail.message.length > 10);
        assert.deepEqual(body, { detail: { error_type: type, message: body.detail.message } });
        assert.equal(Object.fromEntries(rendered.headers)['x-should-retry'], shouldRetry);
      }
    });
  }

  test('a wrong field is named by its path', () => {
    const options = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`o${index}`, null]));
    const refusal = checkQuestions({ state: 's', questions: { department: { type: 'choice', criteria: options } } });
    assert.ok(refusal !== null);
    assert.deepEqual(refusalBody(renderRefusal(refusal, 'systemone', CONTEXT).body), {
      detail: {
        error_type: 'invalid_request_error',
        message: 'The field "questions.department.criteria" is not valid: must have 1 to 255 options, not 256.',
      },
    });
  });

  test('missing criteria are left to the provider and its 422', () => {
    assert.equal(checkQuestions({ state: 's', questions: { q: { type: 'choice', instructions: 'Pick one.' } } }), null);
  });
});

const CREDIT = {
  balance_url: 'https://gate.test/v1/billing/credits',
  top_up_url: 'https://gate.test/v1/billing/deposits',
};
const ADMISSION_ROWS: readonly (readonly [Refusal, number, object])[] = [
  [{ kind: 'insufficient_credit' }, 402, { billing: { code: 'insufficient_credit', retryable: false, ...CREDIT } }],
  [{ kind: 'billing_frozen' }, 403, { billing: { code: 'billing_frozen', retryable: false, ...CREDIT } }],
  [{ kind: 'billing_unavailable' }, 503, { billing: { code: 'billing_unavailable', retryable: true, ...CREDIT } }],
  [{ kind: 'usage_limit_exceeded' }, 429, { retryable: false }],
  [{ kind: 'rate_limit', retryAfterMs: 1500 }, 429, { retryable: true, retry_after_seconds: 2 }],
  [{ kind: 'concurrency_limit' }, 429, { retryable: true, retry_after_seconds: 1 }],
  [{ kind: 'traffic_token_bound_required', field: 'questions' }, 422, { retryable: false }],
];

describe('credit, budget and traffic refusals are flat, even where dialects have theirs', () => {
  for (const [refusal, status, fields] of ADMISSION_ROWS) {
    test(`${refusal.kind}: ${status}`, () => {
      for (const admissionForm of ['flat', 'dialect'] as const) {
        const rendered = renderRefusal(refusal, 'systemone', { ...CONTEXT, admissionForm });
        assert.equal(rendered.status, status);
        const body = refusalBody(rendered.body);
        assert.equal(typeof body['message'], 'string');
        assert.deepEqual(body, { error: refusal.kind, message: body['message'], ...fields });
      }
    });
  }

  test('a body without a non-empty questions object has no bound', () => {
    const text = '{"model":"m","state":"s","questions":{}}';
    const refusal = refuseWithoutQuestions(new RequestScanner().scan(Buffer.from(text)), Buffer.from(text));
    assert.ok(refusal !== null);
    const rendered = renderRefusal(refusal, 'systemone', CONTEXT);
    assert.equal(rendered.status, 422);
    assert.equal((JSON.parse(rendered.body) as { error: string }).error, 'traffic_token_bound_required');
  });
});

test('what is refused before the route keeps the gateway’s form (7.6)', () => {
  const rendered = renderRefusal({ kind: 'unauthorized' }, 'systemone', CONTEXT);
  assert.equal(rendered.status, 401);
  assert.equal(rendered.body, JSON.stringify({ error: 'unauthorized', request_id: CONTEXT.requestId }));
});
