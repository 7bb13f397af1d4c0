// Spec 7.3, images: the service's own errors (missing model, unknown model, unreadable n) are an error object with
// message, type and code. Spec 8: n above 10 is 422 for billed organizations.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import {
  readImageBounds,
  readImageFormBounds,
  readImageFormModel,
  refuseImageForm,
} from '../../src/generation/dialects/images.ts';
import { scanMultipart } from '../../src/generation/request/multipart-scan.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { type FormEntry, writeForm } from '../support/multipart-forms.ts';
import { refusalBody } from '../support/refusal-body.ts';

const CONTEXT = { requestId: 'req-1', publicUrl: 'https://gate.test' };

/** What a request as JSON is refused with. */
function refusalOfJson(request: object): Refusal | null {
  const body = Buffer.from(JSON.stringify(request));
  const bounds = readImageBounds(new RequestScanner().scan(body), body);
  return 'kind' in bounds ? bounds : bounds.refusalIfBilled;
}

/** What a form is refused with. */
function refusalOfForm(entries: readonly FormEntry[], contentType = 'multipart/form-data; boundary=b'): Refusal | null {
  const body = writeForm('b', entries);
  const form = scanMultipart(body, contentType);
  if ('fault' in form) return refuseImageForm(form);
  const model = readImageFormModel(form, body);
  if (typeof model !== 'string') return model;
  const bounds = readImageFormBounds(form, body);
  return 'kind' in bounds ? bounds : bounds.refusalIfBilled;
}

const MODEL: FormEntry = { name: 'model', value: 'openai/image-x' };
const asText = (value: string): FormEntry => ({ name: 'n', value });

const ROWS: readonly (readonly [string, Refusal | null, number, string, string | null])[] = [
  ['a missing model', { kind: 'missing_model' }, 400, 'missing_model', 'model'],
  ['a missing model in a form', refusalOfForm([asText('1')]), 400, 'missing_model', 'model'],
  ['an empty model in a form', refusalOfForm([{ name: 'model', value: '' }]), 400, 'missing_model', 'model'],
  ['a model that is a file', refusalOfForm([{ ...MODEL, filename: 'm.txt' }]), 400, 'model_not_a_string', 'model'],
  ['a model that comes twice', refusalOfForm([MODEL, MODEL]), 400, 'duplicate_key', 'model'],
  ['an unknown model', { kind: 'unknown_model', model: 'no/such' }, 404, 'model_not_found', 'model'],
  [
    'a text model',
    { kind: 'api_not_supported', model: 'openai/gpt', api: 'images' },
    400,
    'api_not_supported',
    'model',
  ],
  ['n as text', refusalOfJson({ n: '2' }), 400, 'invalid_field', 'n'],
  ['n as a fraction', refusalOfJson({ n: 1.5 }), 400, 'invalid_field', 'n'],
  ['n of zero', refusalOfJson({ n: 0 }), 400, 'invalid_field', 'n'],
  ['n of words in a form', refusalOfForm([MODEL, asText('two')]), 400, 'invalid_field', 'n'],
  ['an empty n in a form', refusalOfForm([MODEL, asText('')]), 400, 'invalid_field', 'n'],
  ['stream as text', refusalOfJson({ stream: 'yes' }), 400, 'invalid_field', 'stream'],
  ['a form without a boundary', refusalOfForm([MODEL], 'multipart/form-data'), 400, 'invalid_form', null],
  [
    'a form with another boundary',
    refusalOfForm([MODEL], 'multipart/form-data; boundary=c'),
    400,
    'invalid_form',
    null,
  ],
];

describe('the service’s own errors on an images route', () => {
  for (const [name, refusal, status, code, param] of ROWS) {
    test(`${name}: ${status} ${code}`, () => {
      assert.ok(refusal !== null);
      const rendered = renderRefusal(refusal, 'openai', CONTEXT);
      assert.equal(rendered.status, status);
      const { error } = JSON.parse(rendered.body) as { error: { message: string } };
      assert.ok(error.message.length > 10);
      assert.deepEqual(refusalBody(rendered.body), {
        error: { message: error.message, type: 'invalid_request_error', code, param },
      });
      assert.equal(Object.fromEntries(rendered.headers)['x-should-retry'], 'false');
    });
  }
});

test('n above 10 is 422 for billed organizations, in both forms of request and of refusal', () => {
  for (const refusal of [refusalOfJson({ n: 11 }), refusalOfForm([MODEL, asText('11')])]) {
    assert.ok(refusal !== null);
    const flat = renderRefusal(refusal, 'openai', CONTEXT);
    assert.equal(flat.status, 422);
    const message = 'At most 10 images can be billed in one request. Set "n" to 10 or less.';
    const billing = {
      code: 'not_safely_billable',
      retryable: false,
      balance_url: 'https://gate.test/v1/billing/credits',
      top_up_url: 'https://gate.test/v1/billing/deposits',
    };
    assert.deepEqual(refusalBody(flat.body), { error: 'not_safely_billable', message, billing });
    const dialect = renderRefusal(refusal, 'openai', { ...CONTEXT, admissionForm: 'dialect' });
    assert.equal(dialect.status, 422);
    assert.deepEqual(refusalBody(dialect.body), {
      error: { message, type: 'billing_error', code: 'not_safely_billable', param: 'n' },
      billing,
    });
  }
});
