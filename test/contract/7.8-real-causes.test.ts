// Spec 7.8, 8, 4.3: a refusal with 400, 402, 413 or 422 names what is really in the way, and advises what helps;
// images, which are priced each, need no bound on their tokens.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { callRoute, GENERATION_ROUTES } from '../support/generation-routes.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';

const BODY_LIMIT_BYTES = 65_536;
const TEXT_APIS = 'chat_completions, responses, messages';
const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const GENERATIONS = '/v1/images/generations';
const EDITS = '/v1/images/edits';

const IMAGE_REPLY =
  '{"created":1764000000,"data":[{"b64_json":"aW1hZ2U="}],"usage":{"input_tokens":900,"output_tokens":4000}}';
const PICTURE = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.test/a.png' } }] };
const HELLO = [{ role: 'user', content: 'hi' }];
/** Of a model whose price is known and whose context is not. */
const CONTEXT_UNKNOWN = /no "context_length" for this model.*ask the operator to add "context_length"/;

interface Row {
  readonly name: string;
  readonly path: string;
  readonly body: object | string;
  readonly who?: string;
  readonly status: number;
  readonly says: RegExp;
  /** What would lead its reader astray. */
  readonly never?: RegExp;
}

const ROWS: readonly Row[] = [
  ...[CHAT, RESPONSES, MESSAGES].map((path) => ({
    name: 'a model without a price, and no output limit',
    path,
    body: { model: 'sim/unpriced', messages: HELLO, input: 'hi' },
    status: 422,
    says: /This model has no catalog price.*Name a model that has one/,
    never: /max_/,
  })),
  {
    name: 'an image model without a price',
    path: GENERATIONS,
    body: { model: 'sim/image-unpriced', prompt: 'a cat' },
    status: 422,
    says: /This model has no catalog price/,
    never: /"n"/,
  },
  {
    name: 'a background response',
    path: RESPONSES,
    body: { model: 'sim/unsized', input: 'hi', background: true },
    status: 422,
    says: /"background" cannot be billed.*Leave "background" out/,
    never: /max_output_tokens/,
  },
  {
    name: 'an image by reference for a model without a context length',
    path: CHAT,
    body: { model: 'sim/unsized', messages: [PICTURE], max_tokens: 10 },
    status: 422,
    says: CONTEXT_UNKNOWN,
    never: /Set "max_tokens"/,
  },
  {
    name: 'the same under a limit on tokens per minute',
    path: CHAT,
    body: { model: 'sim/unsized', messages: [PICTURE], max_tokens: 10 },
    who: 'wordy',
    status: 422,
    says: CONTEXT_UNKNOWN,
    never: /Set "max_tokens"/,
  },
  {
    name: 'no output limit',
    path: CHAT,
    body: { model: 'sim/uncapped', messages: HELLO },
    status: 422,
    says: /Set "max_tokens" to a whole number within the limits of the model/,
  },
  // Some of them are whole numbers, as JSON goes.
  ...['-5', '1.5', '"5"', '10.0', '1e1', '9007199254740993'].map((limit) => ({
    name: `an output limit of ${limit}`,
    path: CHAT,
    body: `{"model":"sim/small","messages":${JSON.stringify(HELLO)},"max_tokens":${limit}}`,
    status: 400,
    says: /"max_tokens" is not valid: must be a whole number from 0 to 9007199254740991, in digits alone/,
  })),
  ...GENERATION_ROUTES.map(({ path, fields }) => ({
    name: 'an empty model',
    path,
    body: { model: '', ...fields },
    status: 400,
    says: /The field "model" of the request body is empty/,
    never: /has no "model"/,
  })),
  {
    name: 'images for which the money does not suffice',
    path: GENERATIONS,
    body: { model: 'sim/image', prompt: 'a cat', n: 2 },
    who: 'poor',
    status: 402,
    says: /Add credit, or ask for fewer images \("n"\)/,
    never: /output limit/,
  },
  {
    name: 'more images than can be billed',
    path: GENERATIONS,
    body: { model: 'sim/image', prompt: 'a cat', n: 11 },
    status: 422,
    says: /At most 10 images can be billed in one request\. Set "n" to 10 or less/,
    never: /limits of the model/,
  },
  {
    name: 'text for which the money does not suffice',
    path: CHAT,
    body: { model: 'sim/small', messages: HELLO, max_tokens: 4000 },
    who: 'poor',
    status: 402,
    says: /Add credit, or lower the output limit/,
  },
  {
    name: 'a body over the limit',
    path: CHAT,
    body: `{"model":"sim/small","messages":[],"x":"${'x'.repeat(BODY_LIMIT_BYTES)}"}`,
    status: 413,
    says: new RegExp(`larger than the limit of ${BODY_LIMIT_BYTES} bytes`),
  },
];

function configuration(upstreamUrl: string): string {
  const model = (id: string, apis: string, fields: string, price: string | null): string => `  - id: ${id}
    display_name: Test ${id}
    ${fields}
    tokenizer: o200k_base
    served_by:
      - provider: upstream
        model: ${id.slice('sim/'.length)}
        apis: [${apis}]
${price === null ? '' : `        price: ${price}\n`}`;
  const text = '{ input: "1.00", output: "10.00" }';
  return `providers:
  - { id: upstream, base_url: ${upstreamUrl}, api_key: sk-provider, auth: bearer, stored_objects: shared }
models:
${model('sim/small', TEXT_APIS, 'kind: text\n    context_length: 100000\n    max_completion_tokens_cap: 4096', text)}\
${model('sim/uncapped', TEXT_APIS, 'kind: text\n    context_length: 100000', text)}\
${model('sim/unsized', TEXT_APIS, 'kind: text\n    max_completion_tokens_cap: 4096', text)}\
${model('sim/unpriced', TEXT_APIS, 'kind: text\n    context_length: 100000', null)}\
${model('sim/image', 'images', 'kind: image', '{ image: "0.04" }')}\
${model('sim/image-unpriced', 'images', 'kind: image', null)}\
organizations:
${renderOrganization({ slug: 'rich', credit: '1000' })}\
${renderOrganization({ slug: 'poor', credit: '0.01' })}\
${renderOrganization({ slug: 'wordy', credit: null, limits: ['{ kind: tokens_per_minute, limit: 1000000 }'] })}`;
}

describe('what a refusal says', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: IMAGE_REPLY }));
    tollgate = await startFront({
      configurationYaml: configuration(upstream.url),
      env: { BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) },
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  for (const { name, path, body, who = 'rich', status, says, never } of ROWS) {
    test(`${path}: ${name}`, async () => {
      const calls = upstream.requests.length;
      const answer = await callRoute(`${tollgate.url}${path}`, {
        key: limitedKey(who),
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
      // Messages are JSON strings within JSON.
      const text = answer.body.replaceAll('\\"', '"');
      assert.equal(answer.status, status, text);
      assert.match(text, says);
      if (never !== undefined) assert.doesNotMatch(text, never);
      assert.equal(upstream.requests.length, calls, 'nothing was sent');
    });
  }

  const IMAGES: Readonly<Record<string, string>> = {
    'addresses of images':
      '"images":[{"image_url":"https://example.test/a.png"},{"image_url":"https://example.test/b.png"}]',
    'an image and a mask that the provider keeps': '"images":[{"file_id":"file-1"}],"mask":{"file_id":"file-2"}',
    'an image in the body': '"images":[{"image_url":"data:image/png;base64,AAAA"}]',
  };
  for (const [name, fields] of Object.entries(IMAGES)) {
    test(`${EDITS}: ${name} are served to a billed organization, whatever the context of the model`, async () => {
      const answer = await callRoute(`${tollgate.url}${EDITS}`, {
        key: limitedKey('rich'),
        body: `{"model":"sim/image","prompt":"blue",${fields}}`,
      });
      assert.deepEqual([answer.status, answer.body], [200, IMAGE_REPLY]);
      assert.equal(upstream.requests.at(-1)?.body.toString(), `{"model":"image","prompt":"blue",${fields}}`);
      const id = String(answer.headers['x-service-execution-id']);
      const record = await settledGeneration(tollgate.url, limitedKey('rich'), id);
      assert.deepEqual([record.billingStatus, record.totalCost], ['final', '0.04']);
    });
  }
});
