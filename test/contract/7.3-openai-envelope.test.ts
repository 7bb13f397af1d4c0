// Spec 7.3: `error` with message, type, code and param; the type follows the status.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openaiErrorType } from '../../src/domain/refusals/envelopes/openai.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import { refusalBody } from '../support/refusal-body.ts';

const CONTEXT = { requestId: 'req-1', publicUrl: 'https://gate.test' };

const ROWS: readonly (readonly [Refusal, number, string, string, string | null])[] = [
  [{ kind: 'invalid_json' }, 400, 'invalid_request_error', 'invalid_json', null],
  [{ kind: 'invalid_utf8' }, 400, 'invalid_request_error', 'invalid_utf8', null],
  [{ kind: 'body_not_an_object' }, 400, 'invalid_request_error', 'body_not_an_object', null],
  [{ kind: 'body_too_deep' }, 400, 'invalid_request_error', 'body_too_deep', null],
  [{ kind: 'duplicate_key', key: 'stream' }, 400, 'invalid_request_error', 'duplicate_key', 'stream'],
  [{ kind: 'missing_model' }, 400, 'invalid_request_error', 'missing_model', 'model'],
  [{ kind: 'model_not_a_string' }, 400, 'invalid_request_error', 'model_not_a_string', 'model'],
  [
    { kind: 'invalid_field', field: 'max_tokens', reason: 'it must be a whole number' },
    400,
    'invalid_request_error',
    'invalid_field',
    'max_tokens',
  ],
  [{ kind: 'invalid_target' }, 400, 'invalid_request_error', 'invalid_target', null],
  [{ kind: 'repeated_header', name: 'host' }, 400, 'invalid_request_error', 'repeated_header', null],
  [{ kind: 'unsendable_header', name: 'user-agent' }, 400, 'invalid_request_error', 'unsendable_header', null],
  [
    { kind: 'api_not_supported', model: 'm', api: 'messages' },
    400,
    'invalid_request_error',
    'api_not_supported',
    'model',
  ],
  [{ kind: 'unknown_model', model: 'no/such' }, 404, 'invalid_request_error', 'model_not_found', 'model'],
  [{ kind: 'unknown_path', path: '/v2' }, 404, 'invalid_request_error', 'unknown_path', null],
  [{ kind: 'not_found' }, 404, 'invalid_request_error', 'not_found', null],
  [{ kind: 'method_not_allowed' }, 405, 'invalid_request_error', 'method_not_allowed', null],
  [{ kind: 'request_timeout' }, 408, 'invalid_request_error', 'request_timeout', null],
  [{ kind: 'length_required' }, 411, 'invalid_request_error', 'length_required', null],
  [{ kind: 'transfer_encoding_refused' }, 411, 'invalid_request_error', 'transfer_encoding_refused', null],
  [{ kind: 'body_too_large', limitBytes: 10 }, 413, 'invalid_request_error', 'body_too_large', null],
  [{ kind: 'unsupported_media_type' }, 415, 'invalid_request_error', 'unsupported_media_type', null],
  [{ kind: 'websocket_not_supported' }, 426, 'invalid_request_error', 'websocket_not_supported', null],
  [{ kind: 'internal_error' }, 500, 'server_error', 'internal_error', null],
  [{ kind: 'upstream_unreachable' }, 502, 'server_error', 'upstream_unreachable', null],
  [{ kind: 'upstream_timeout' }, 502, 'server_error', 'upstream_timeout', null],
  [{ kind: 'provider_unavailable' }, 502, 'server_error', 'provider_unavailable', null],
  [{ kind: 'draining' }, 503, 'server_error', 'draining', null],
];

describe('a refusal on an OpenAI-style route', () => {
  for (const [refusal, status, type, code, param] of ROWS) {
    test(`${refusal.kind}: ${status} ${type}`, () => {
      for (const envelope of ['chat', 'openai'] as const) {
        const rendered = renderRefusal(refusal, envelope, CONTEXT);
        assert.equal(rendered.status, status);
        const body = refusalBody(rendered.body, 'req-1') as { error: { message: string } };
        assert.deepEqual(Object.keys(body), ['error']);
        assert.ok(body.error.message.length > 10);
        assert.deepEqual(body.error, { message: body.error.message, type, code, param });
      }
    });
  }
});

test('error.type follows the status', () => {
  const types = [400, 401, 402, 403, 404, 409, 413, 422, 426, 429, 500, 501, 502, 503, 529].map(openaiErrorType);
  const invalid = 'invalid_request_error';
  const expected = [
    invalid,
    'authentication_error',
    invalid,
    'permission_error',
    invalid,
    invalid,
    invalid,
    invalid,
    invalid,
    'rate_limit_error',
  ];
  assert.deepEqual(types, [...expected, ...Array<string>(5).fill('server_error')]);
});
