// Spec 4.3 over HTTP: generations as JSON, edits as forms and as JSON; n and what it costs; what is the provider's to
// judge; no variations. How the service's own errors are written is in 7.3; what holds for every generation route is in
// 7.8.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type FakeUpstream,
  type ReceivedRequest,
  type ScriptedReply,
  startFakeUpstream,
} from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { CONTRACT_MODELS, type ContractAnswer, callRoute } from '../support/generation-routes.ts';
import { type FormEntry, writeForm } from '../support/multipart-forms.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { decimalOfPico, KEYS, type TestModel, testConfiguration } from '../support/test-configuration.ts';

const PATHS = { generations: '/v1/images/generations', edits: '/v1/images/edits' } as const;
const PICO_PER_IMAGE = 40_000_000_000n;
const BOUNDARY = 'form-boundary';
const FORM_TYPE = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

const text = (name: string, value: string): FormEntry => ({ name, value });
const file = (name: string, filename: string, value: Buffer): FormEntry => ({
  name,
  filename,
  headers: ['Content-Type: image/png'],
  value,
});
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 255, 13, 10, 45, 45]);

const formOf = (model: string, entries: readonly FormEntry[]): Buffer =>
  writeForm(BOUNDARY, [text('prompt', 'a cat'), text('model', model), ...entries]);
/** JSON text, so that the test decides each byte. */
const jsonOf = (model: string, fields: string): string =>
  `{"prompt" : "a c\\u0061t", "model":"${model}"${fields === '' ? '' : `, ${fields}`}}`;

/** As a provider writes it, with as many images as were asked for. */
function replyWith(images: number): string {
  const data = Array.from({ length: images }, (_, index) => `{ "b64_json" : "aW1hZ2U${index}" }`);
  const usage =
    '{"input_tokens":9,"output_tokens":16,"total_tokens":25,"input_tokens_details":{"text_tokens":4,"image_tokens":5}}';
  return `{"created":1764000000,\n "data":[${data.join(' , ')}], "background":"opaque", "usage":${usage}}`;
}

/** A name that would end a part of a form whose boundary is `image`, or the beginning of it. */
const DASHED: TestModel = {
  id: 'sim/dashed',
  providerModel: 'acme--image-1',
  outputCap: null,
  kind: 'image',
  apis: ['images'],
};

const PROVIDER_ERROR =
  '{"error":{"message":"Unknown parameter: \'input_fidelity\'.","type":"invalid_request_error",' +
  '"param":"input_fidelity","code":"unknown_parameter"}}';

/** The forms in which providers write the event of an image, by the prompt that asks for it. */
const EVENTS: Readonly<Record<string, string>> = {
  named: 'event: image_generation.completed\ndata: {"type":"image_generation.completed","b64_json":"AAAA"}',
  'type first': 'data: {"type":"image_generation.completed","b64_json":"AAAA"}',
  'number first': 'data: {"created_at":1,"type":"image_generation.completed","b64_json":"AAAA"}',
  sorted: 'data: {"b64_json":"AAAA","type":"image_generation.completed"}',
  between:
    'data: {"b64_json":"AAAA","type":"image_generation.completed","usage":{"input_tokens":9,"output_tokens":16}}',
};
const eventOf = (prompt: string): string => `${EVENTS[prompt]}\n\n`;

function answer({ body }: ReceivedRequest): ScriptedReply {
  const request = body.toString('latin1');
  const prompt = /"prompt":"([\w ]+)"/.exec(request)?.[1] ?? '';
  if (EVENTS[prompt] !== undefined)
    return { headers: [['content-type', 'text/event-stream']], body: eventOf(prompt), framing: 'chunked' };
  if (request.includes('input_fidelity')) return { status: 400, body: PROVIDER_ERROR };
  const n = /"n":(\d+)|name="n"\r\n\r\n(\d+)/.exec(request);
  return { body: replyWith(Number(n?.[1] ?? n?.[2] ?? 1)) };
}

describe('images', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;

  before(async () => {
    upstream = await startFakeUpstream(answer);
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: [...CONTRACT_MODELS, DASHED] }),
    });
  });

  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const send = (
    operation: keyof typeof PATHS,
    body: string | Buffer,
    key: string = KEYS.acme,
  ): Promise<ContractAnswer> =>
    callRoute(tollgate.url + PATHS[operation], { key, body, headers: typeof body === 'string' ? {} : FORM_TYPE });

  /** What was relayed both ways, and that the id in the header is that of the settled generation. */
  async function assertServed(
    operation: keyof typeof PATHS,
    answered: ContractAnswer,
    sent: string | Buffer,
    images: number,
  ): Promise<void> {
    assert.deepEqual([answered.status, answered.body], [200, replyWith(images)]);
    const request = upstream.requests.at(-1);
    assert.deepEqual([request?.method, request?.path], ['POST', PATHS[operation]]);
    assert.ok(request?.body.equals(Buffer.from(sent)), `the provider got ${request?.body.toString('latin1')}`);
    const id = String(answered.headers['x-service-execution-id']);
    const record = await settledGeneration(tollgate.url, KEYS.acme, id);
    assert.deepEqual([record.id, record.model, record.billingStatus], [id, 'sim/image', 'final']);
    assert.equal(record.totalCost, decimalOfPico(PICO_PER_IMAGE * BigInt(images)), 'per image, whatever the tokens');
    assert.equal(record.tokensCompletion, '16', 'for analytics');
  }

  function assertRefused(answered: ContractAnswer, status: number, code: string, param: string | null): void {
    assert.equal(answered.status, status, answered.body);
    const { error } = refusalBody(answered.body, String(answered.headers['x-service-execution-id'])) as {
      error: { message: string };
    };
    assert.deepEqual(error, { message: error.message, type: 'invalid_request_error', code, param });
  }

  async function refusing(call: () => Promise<ContractAnswer>): Promise<ContractAnswer> {
    const callsBefore = upstream.requests.length;
    const answered = await call();
    assert.equal(upstream.requests.length, callsBefore, 'no provider was asked');
    return answered;
  }

  describe(`POST ${PATHS.generations}`, () => {
    const FIELDS = [
      '',
      '"size":"1024x1536"',
      '"quality":"high", "background":"transparent", "output_format":"webp"',
      '"moderation":"low", "user":"u", "future":{"n":[99]}',
      // Must be omitted for models that return base64: the provider says so.
      '"response_format":"url"',
    ];
    for (const fields of FIELDS) {
      test(`sends ${fields === '' ? 'model and prompt' : fields} as written`, async () => {
        await assertServed(
          'generations',
          await send('generations', jsonOf('sim/image', fields)),
          jsonOf('image', fields),
          1,
        );
      });
    }

    test('is JSON and no form', async () => {
      assertRefused(
        await refusing(() => send('generations', formOf('sim/image', []))),
        415,
        'unsupported_media_type',
        null,
      );
    });

    test('has a model', async () => {
      assertRefused(await refusing(() => send('generations', '{"prompt":"a cat"}')), 400, 'missing_model', 'model');
    });
  });

  describe(`POST ${PATHS.edits}`, () => {
    const FORMS: Readonly<Record<string, readonly FormEntry[]>> = {
      'one image': [file('image', 'cat.png', PNG)],
      'several images, a mask and fields of the provider': [
        file('image[]', '1.png', PNG),
        file('image[]', '2.png', Buffer.concat([PNG, PNG])),
        file('mask', 'mask.png', PNG),
        text('quality', 'high'),
        text('size', '1024x1024'),
        text('future', 'field'),
      ],
    };
    for (const [name, entries] of Object.entries(FORMS)) {
      test(`a form with ${name}: nothing changes but the model`, async () => {
        await assertServed('edits', await send('edits', formOf('sim/image', entries)), formOf('image', entries), 1);
      });
    }

    test('JSON with image addresses, as real clients send it', async () => {
      const fields =
        '"images":[{"image_url":"data:image/png;base64,AAAA"}, {"image_url":"https://example.test/a.png"}], ' +
        '"mask":{"image_url":"x"}';
      await assertServed('edits', await send('edits', jsonOf('sim/image', fields)), jsonOf('image', fields), 1);
    });

    test("input_fidelity is the provider's to refuse", async () => {
      const answered = await send(
        'edits',
        formOf('sim/image', [file('image', 'cat.png', PNG), text('input_fidelity', 'high')]),
      );
      assert.deepEqual([answered.status, answered.body], [400, PROVIDER_ERROR]);
    });

    test('has a model that exists and is a text', async () => {
      const form = (entries: readonly FormEntry[]) =>
        refusing(() => send('edits', writeForm(BOUNDARY, [text('prompt', 'a cat'), ...entries])));
      assertRefused(await form([]), 400, 'missing_model', 'model');
      assertRefused(await form([text('model', 'no/such')]), 404, 'model_not_found', 'model');
      assertRefused(await form([text('model', 'sim/small')]), 400, 'api_not_supported', 'model');
      assertRefused(
        await form([file('model', 'model.txt', Buffer.from('sim/image'))]),
        400,
        'model_not_a_string',
        'model',
      );
      assertRefused(
        await refusing(() => send('edits', '{"prompt":"a cat","images":[]}')),
        400,
        'missing_model',
        'model',
      );
    });

    test('is a form or JSON, and who sent something else is told both', async () => {
      const answered = await refusing(() =>
        callRoute(tollgate.url + PATHS.edits, {
          key: KEYS.acme,
          body: Buffer.from('model=sim/image'),
          headers: { 'content-type': 'text/plain' },
        }),
      );
      assertRefused(answered, 415, 'unsupported_media_type', null);
      assert.match(answered.body, /not multipart\/form-data or application\/json/);
    });

    test('is a form that can be read', async () => {
      const cut = formOf('sim/image', []).subarray(0, -4);
      assertRefused(await refusing(() => send('edits', cut)), 400, 'invalid_form', null);
    });

    test("has a boundary that the provider's name of the model does not contain", async () => {
      const ask = (boundary: string): Promise<ContractAnswer> =>
        callRoute(tollgate.url + PATHS.edits, {
          key: KEYS.acme,
          body: writeForm(boundary, [text('model', 'sim/dashed'), file('image', 'cat.png', PNG)]),
          headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        });
      for (const boundary of ['image', 'image-1', 'i'])
        assertRefused(await refusing(() => ask(boundary)), 400, 'invalid_form', null);
      const served = await ask('image-12');
      assert.deepEqual([served.status, served.body], [200, replyWith(1)]);
    });
  });

  describe('n', () => {
    for (let n = 1; n <= 10; n += 1) {
      test(`${n}: ${n} images, each of them paid for`, async () => {
        const body = (model: string) => jsonOf(model, `"n":${n}`);
        await assertServed('generations', await send('generations', body('sim/image')), body('image'), n);
      });
    }

    test('the same in a form', async () => {
      const body = (model: string) => formOf(model, [text('n', '10')]);
      await assertServed('edits', await send('edits', body('sim/image')), body('image'), 10);
    });

    test('null is one', async () => {
      await assertServed(
        'generations',
        await send('generations', jsonOf('sim/image', '"n":null')),
        jsonOf('image', '"n":null'),
        1,
      );
    });

    for (const n of ['0', '-1', '1.5', '"2"', 'true', '[1]', '1e1']) {
      test(`${n}: 400`, async () => {
        assertRefused(
          await refusing(() => send('generations', jsonOf('sim/image', `"n":${n}`))),
          400,
          'invalid_field',
          'n',
        );
      });
    }

    for (const n of ['0', '-1', '1.5', 'two', '']) {
      test(`${JSON.stringify(n)} in a form: 400`, async () => {
        assertRefused(
          await refusing(() => send('edits', formOf('sim/image', [text('n', n)]))),
          400,
          'invalid_field',
          'n',
        );
      });
    }

    // The refusal itself, in both forms: 7.4.
    for (const n of [11, 1_000_000]) {
      test(`${n}: 422 for a billed organization; for another one the provider's to judge`, async () => {
        for (const [operation, body] of [
          ['generations', jsonOf('sim/image', `"n":${n}`)],
          ['edits', formOf('sim/image', [text('n', String(n))])],
        ] as const) {
          const answered = await refusing(() => send(operation, body));
          assert.equal(answered.status, 422);
          assert.equal((JSON.parse(answered.body) as { error: unknown }).error, 'not_safely_billable');
        }
        const free = await send('generations', jsonOf('sim/image', `"n":11`), KEYS.free);
        assert.deepEqual([free.status, free.body], [200, replyWith(11)]);
      });
    }
  });

  describe('a stream', () => {
    for (const prompt of Object.keys(EVENTS)) {
      test(`costs its image, however its event is written: ${prompt}`, async () => {
        const body = JSON.stringify({ model: 'sim/image', prompt, stream: true });
        const answered = await send('generations', body);
        assert.deepEqual([answered.status, answered.body], [200, eventOf(prompt)]);
        const id = String(answered.headers['x-service-execution-id']);
        const record = await settledGeneration(tollgate.url, KEYS.acme, id);
        assert.deepEqual([record.billingStatus, record.totalCost], ['final', decimalOfPico(PICO_PER_IMAGE)]);
      });
    }
  });

  test('there are no variations', async () => {
    for (const body of [jsonOf('sim/image', ''), formOf('sim/image', [file('image', 'cat.png', PNG)])]) {
      const answered = await refusing(() =>
        callRoute(`${tollgate.url}/v1/images/variations`, { body, headers: typeof body === 'string' ? {} : FORM_TYPE }),
      );
      assert.equal(answered.status, 404);
      assert.equal(answered.headers['x-should-retry'], 'false');
      assert.match(answered.body, /There is no endpoint at \\"\/v1\/images\/variations\\"/);
    }
  });
});
