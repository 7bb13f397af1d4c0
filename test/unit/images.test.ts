// The image dialect: bounds in both forms, the count of images in replies of any shape and split, and the usage they
// report.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import OpenAI, { toFile } from 'openai';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { rateUsage } from '../../src/domain/settlement/rate-usage.ts';
import { checkUsage, NO_USAGE_BOUNDS } from '../../src/domain/usage/check-usage.ts';
import {
  type ImageBounds,
  readImageBounds,
  readImageFormBounds,
  readImageFormModel,
  readImageUsage,
  refuseImageForm,
} from '../../src/generation/dialects/images.ts';
import { type ScannedForm, scanMultipart } from '../../src/generation/request/multipart-scan.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { ImageDocumentTally, ImageStreamTally, type ImageTally } from '../../src/generation/sse/image-tally.ts';
import { splitBytes } from '../support/byte-splits.ts';
import { type FormEntry, writeForm } from '../support/multipart-forms.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const scanner = new RequestScanner();

function boundsOfJson(request: string | object): ImageBounds | Refusal {
  const body = Buffer.from(typeof request === 'string' ? request : JSON.stringify(request));
  const scanned = scanner.scan(body);
  assert.equal(scanned.fault, null);
  return readImageBounds(scanned, body);
}

function scanForm(body: Buffer, contentType = 'multipart/form-data; boundary=b'): ScannedForm {
  const form = scanMultipart(body, contentType);
  assert.ok(!('fault' in form), JSON.stringify(form));
  return form;
}

function boundsOfForm(entries: readonly FormEntry[]): ImageBounds | Refusal {
  const body = writeForm('b', entries);
  return readImageFormBounds(scanForm(body), body);
}

const INVALID_N = { kind: 'invalid_field', field: 'n', reason: 'must be a whole number from 1 to 10, in digits alone' };
const INVALID_STREAM = { kind: 'invalid_field', field: 'stream', reason: 'must be true or false' };
const TOO_MANY = {
  kind: 'not_safely_billable',
  field: 'n',
  reason: 'At most 10 images can be billed in one request.',
  advice: 'Set "n" to 10 or less.',
};
const bounded = (answers: number, streamed = false): object => ({
  streamed,
  outputTokensMax: 0,
  answers,
  refusalIfBilled: answers > 10 ? TOO_MANY : null,
});

describe('what a request may cost', () => {
  const rows: readonly (readonly [unknown, string, object])[] = [
    [1, '1', bounded(1)],
    [10, '10', bounded(10)],
    [11, '11', bounded(11)],
    [1_000_000, '1000000', bounded(1_000_000)],
    [0, '0', INVALID_N],
    [-1, '-1', INVALID_N],
    [1.5, '1.5', INVALID_N],
    ['1', '', INVALID_N],
    [[1], ' 1', INVALID_N],
    [true, '01', INVALID_N],
    [1e21, '1e3', INVALID_N],
    [{}, '99999999999999999999', INVALID_N],
  ];
  for (const [value, text, expected] of rows) {
    test(`n: ${JSON.stringify(value)} in JSON, ${JSON.stringify(text)} in a form`, () => {
      assert.deepEqual(boundsOfJson({ model: 'm', n: value }), expected);
      assert.deepEqual(boundsOfForm([{ name: 'n', value: text }]), expected);
    });
  }

  test('n is 1 when it is absent or null, and never rounded', () => {
    assert.deepEqual(boundsOfJson({ model: 'm' }), bounded(1));
    assert.deepEqual(boundsOfJson({ model: 'm', n: null }), bounded(1));
    assert.deepEqual(boundsOfForm([]), bounded(1));
    for (const written of ['1.0', '1e0', '10e-1', '-0'])
      assert.deepEqual(boundsOfJson(`{"model":"m","n":${written}}`), INVALID_N);
  });

  test('stream', () => {
    for (const [value, text, expected] of [
      [true, 'true', bounded(1, true)],
      [false, 'false', bounded(1)],
      ['true', 'True', INVALID_STREAM],
      [1, '1', INVALID_STREAM],
      ['', '', INVALID_STREAM],
    ] as const) {
      assert.deepEqual(boundsOfJson({ stream: value }), expected);
      assert.deepEqual(boundsOfForm([{ name: 'stream', value: text }]), expected);
    }
    assert.deepEqual(boundsOfJson({ stream: null }), bounded(1));
  });
});

describe('forms', () => {
  test('name their model', () => {
    const modelOf = (value: string | Buffer): string | Refusal => {
      const body = writeForm('b', [{ name: 'model', value }]);
      return readImageFormModel(scanForm(body), body);
    };
    const tooLong = { kind: 'invalid_field', field: 'model', reason: 'must be text of at most 512 bytes' };
    assert.equal(modelOf('openai/image-x'), 'openai/image-x');
    assert.deepEqual(modelOf(''), { kind: 'missing_model', isEmpty: true });
    assert.deepEqual(modelOf('m'.repeat(513)), tooLong);
    assert.deepEqual(modelOf(Buffer.from([0xff])), tooLong);
    const none = writeForm('b', []);
    assert.deepEqual(readImageFormModel(scanForm(none), none), { kind: 'missing_model' });
  });

  test('that cannot be read are refused for what is wrong', () => {
    const refusalOf = (body: Buffer, type = 'multipart/form-data; boundary=b'): Refusal => {
      const form = scanMultipart(body, type);
      assert.ok('fault' in form);
      return refuseImageForm(form);
    };
    const twice = (name: string): Buffer =>
      writeForm(
        'b',
        [1, 2].map(() => ({ name, value: '1' })),
      );
    const asFile = (name: string): Buffer => writeForm('b', [{ name, filename: 'f', value: '1' }]);
    assert.deepEqual(refusalOf(twice('model')), { kind: 'duplicate_key', key: 'model' });
    assert.deepEqual(refusalOf(twice('n')), { kind: 'duplicate_key', key: 'n' });
    assert.deepEqual(refusalOf(asFile('model')), { kind: 'model_not_a_string' });
    assert.deepEqual(refusalOf(asFile('n')), {
      kind: 'invalid_field',
      field: 'n',
      reason: 'must be one plain text part of the form',
    });
    const many = writeForm('b', Array<FormEntry>(257).fill({ name: 'x', value: '' }));
    const long = writeForm('b', [{ name: 'x'.repeat(9000), value: '' }]);
    for (const refusal of [
      refusalOf(Buffer.alloc(0)),
      refusalOf(Buffer.from('--b--'), 'multipart/form-data'),
      refusalOf(many),
      refusalOf(long),
    ])
      assert.equal(refusal.kind, 'invalid_form');
    assert.deepEqual(refusalOf(Buffer.from('x--b--')), {
      kind: 'invalid_form',
      reason: 'a part or boundary near byte 1 is not written as it must be',
    });
  });

  test('written by the openai client and by Node are read', async () => {
    const sent: { type: string; body: Buffer }[] = [];
    const capture: typeof fetch = async (input, init) => {
      // The client first asks its fetch whether it can write forms.
      if (input === 'data:,') return new Response();
      const request = new Request(input as string, init);
      sent.push({ type: request.headers.get('content-type') ?? '', body: Buffer.from(await request.arrayBuffer()) });
      return Response.json({ created: 1, data: [] });
    };
    const client = new OpenAI({ apiKey: 'k', baseURL: 'http://gate.test/v1', fetch: capture });
    const image = await toFile(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), 'a "quoted" name.png', {
      type: 'image/png',
    });
    await client.images.edit({
      model: 'openai/image-x',
      image: [image, image],
      mask: image,
      prompt: 'a cat\r\n--\r\n',
      n: 3,
      stream: false,
    });
    await client.images.edit({ model: 'openai/image-x', image, prompt: 'a cat' });
    assert.equal(sent.length, 2);
    const [many, one] = sent.map(({ type, body }) => {
      const form = scanForm(body, type);
      return [readImageFormModel(form, body), readImageFormBounds(form, body), form.images, form.masks];
    });
    assert.deepEqual(many, ['openai/image-x', bounded(3), 2, 1]);
    assert.deepEqual(one, ['openai/image-x', bounded(1), 1, 0]);
  });
});

function feedAll(tally: ImageTally, bytes: Buffer, seed: number): ImageTally {
  for (const piece of splitBytes(bytes, { kind: 'random', seed, bytesMax: 40 })) tally.feed(piece);
  return tally;
}

const kept = (bytes: Buffer, cut = false) => ({
  beginning: bytes.subarray(0, 262_144),
  end: bytes.subarray(-32_768),
  cut,
});

describe('the images of a JSON reply', () => {
  test('are the objects in its outermost data array, whatever stands around and inside them', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('data', '\\', '"', '\\"', '{"data":[{}]}', ']}', '\\\\"data', 'data12345'),
    );
    const image = fc.record(
      { b64_json: fc.base64String(), revised_prompt: text, data: fc.array(fc.constant({})) },
      { requiredKeys: [] },
    );
    const others = fc.dictionary(
      fc.constantFrom('created', 'usage', 'dat', 'database', 'x', '\\', '"data"'),
      fc.oneof(text, fc.jsonValue()),
    );
    fc.assert(
      fc.property(
        fc.array(image, { maxLength: 12 }),
        others,
        others,
        fc.integer(),
        fc.constantFrom(0, 2),
        (images, before, after, seed, indent) => {
          const document = Buffer.from(JSON.stringify({ ...before, data: images, ...after }, null, indent));
          const tally = feedAll(new ImageDocumentTally(), document, seed);
          assert.deepEqual([tally.begun, tally.finished], [images.length, images.length]);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('that broke off are those begun and those finished', () => {
    const document = Buffer.from(
      JSON.stringify({ created: 1, data: [{ b64_json: 'AAAA' }, { b64_json: 'BB\\"BB' }], usage: {} }),
    );
    const places = (text: string): number[] =>
      [...document.toString('latin1').matchAll(new RegExp(text, 'g'))].map(({ index }) => index);
    const [openings, closings] = [places('\\{"b64'), places('\\}[,\\]]')];
    assert.deepEqual([openings.length, closings.length], [2, 2]);
    for (let end = 0; end <= document.length; end++) {
      const tally = feedAll(new ImageDocumentTally(), document.subarray(0, end), end);
      const before = (place: number): boolean => place < end;
      assert.deepEqual(
        [tally.begun, tally.finished],
        [openings.filter(before).length, closings.filter(before).length],
        `byte ${end}`,
      );
    }
  });

  test('are none where there is no such array', () => {
    for (const body of [
      '',
      '[]',
      '[{}]',
      '{}',
      '{"data":null}',
      '{"data":{"data":[{}]}}',
      '{"data":"[{}]"}',
      '{"data":[]}',
      '{"a":"data","b":[{}]}',
      'no JSON',
    ])
      assert.deepEqual(feedAll(new ImageDocumentTally(), Buffer.from(body), 1).begun, 0, body);
  });
});

describe('the images of a stream', () => {
  const event = (name: string, extra = ''): string =>
    `event: ${name}\ndata: {"type":"${name}","b64_json":"${'A'.repeat(300)}"${extra}}\n\n`;
  const partial = event('image_generation.partial_image', ',"partial_image_index":0');
  const completed = event(
    'image_generation.completed',
    ',"usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}',
  );

  function tallyOf(text: string, answers: number, seed = 1): ImageStreamTally {
    const tally = new ImageStreamTally(answers);
    feedAll(tally, Buffer.from(text), seed);
    return tally;
  }

  test('are its completed events, by name or by type, in any split', () => {
    for (let seed = 0; seed < 200; seed++) {
      const byType = completed.replace(/^event.*\n/, '').replaceAll('\n', '\r\n');
      const tally = tallyOf(`: hello\n\n${partial}${partial}${completed}${byType}`, 3, seed);
      assert.deepEqual([tally.begun, tally.finished, tally.endedBy], [2, 2, null]);
    }
  });

  test('are counted wherever the type of their data stands, without an event line, in any split', () => {
    const b64 = 'A'.repeat(300);
    const orders = (type: string): string[] => [
      `{"type":"${type}","b64_json":"${b64}"}`,
      `{"created_at":1,"type":"${type}","b64_json":"${b64}"}`,
      `{"b64_json":"${b64}","type":"${type}"}`,
      `{"b64_json":"${b64}","created_at":1,"type":"${type}","usage":{"input_tokens":1,"type":"x"}}`,
      `{"usage":{"type":"x.partial_image"},"\\u0074ype":"${type}","b64_json":"${b64}"}`,
    ];
    const completes = orders('image_generation.completed');
    const partials = orders('image_generation.partial_image');
    for (const [index, data] of completes.entries()) {
      for (let seed = 0; seed < 20; seed++) {
        const tally = tallyOf(`data: ${partials[index]}\n\ndata: ${data}\n\ndata: ${partials[index]}\n\n`, 2, seed);
        assert.deepEqual([tally.begun, tally.finished, tally.endedBy], [2, 1, null], data);
        assert.equal(tallyOf(`data: ${data}`, 1, seed).finished, 1, `${data} without its line end`);
        const named = tallyOf(`event: message\ndata: ${data}\n\n`, 1, seed);
        assert.deepEqual(
          [named.finished, named.endedBy],
          [1, 'image_generation.completed'],
          `${data}, named otherwise`,
        );
      }
    }
  });

  test('count as begun before their event says what it is', () => {
    const sorted = `data: {"b64_json":"${'A'.repeat(300)}","type":"image_generation.`;
    const of = (text: string): number[] => [tallyOf(text, 1).begun, tallyOf(text, 1).finished];
    assert.deepEqual(of(sorted), [1, 0]);
    assert.deepEqual(of(`${sorted}completed"`), [1, 0]);
    assert.deepEqual(of(`${sorted}completed"}`), [1, 1]);
    assert.deepEqual(of(`data: {"type":"keepalive","x":"`), [0, 0]);
    assert.deepEqual(of(`data: {"x":1}\n`), [0, 0]);
    assert.deepEqual(of('event: error\ndata: {"error":{"mess'), [0, 0]);
  });

  test('count as begun from their first partial image on', () => {
    const of = (text: string): number[] => [tallyOf(text, 1).begun, tallyOf(text, 1).finished];
    assert.deepEqual(of(''), [0, 0]);
    assert.deepEqual(of(partial.slice(0, 40)), [1, 0]);
    assert.deepEqual(of(partial + partial), [1, 0]);
    assert.deepEqual(of(partial + completed), [1, 1]);
    assert.deepEqual(of(completed + partial), [2, 1]);
  });

  test('end it with the last one that was asked for, once its event is whole', () => {
    const edit = completed.replaceAll('generation', 'edit');
    const stream = Buffer.from(partial + completed + edit);
    const last = partial.length + completed.length;
    const decided = last + 'event: image_edit.completed\n'.length;
    const tally = new ImageStreamTally(2);
    for (let at = 0; at < stream.length; at++) {
      const progress = tally.feed(stream.subarray(at, at + 1));
      assert.equal(progress, at + 1 < decided ? 'open' : at + 1 < stream.length ? 'ending' : 'ended', `byte ${at}`);
    }
    assert.equal(tally.endedBy, 'image_edit.completed');
  });

  test('end with an error, too, and with [DONE]', () => {
    const failed = tallyOf(`${partial}event: error\ndata: {"type":"error","error":{}}\n\n`, 1);
    assert.deepEqual([failed.finished, failed.endedBy], [0, 'error']);
    const done = new ImageStreamTally(2);
    assert.equal(done.feed(Buffer.from(`${completed}data: [DONE]\n\n`)), 'ended');
    assert.equal(done.endedBy, '[DONE]');
  });

  test('and the usage of the last event', () => {
    const bytes = Buffer.from(partial + completed);
    const usage = readImageUsage(kept(bytes), tallyOf(bytes.toString(), 1), false);
    assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.images], [5, 7, 1]);
  });

  test('of which none was seen are not known to be none, unless the reply broke off', () => {
    for (const stream of [partial, 'data: {"b64_json":"AAAA"}\n\n', 'event: error\ndata: {"type":"error"}\n\n', '']) {
      const bytes = Buffer.from(stream);
      assert.equal(readImageUsage(kept(bytes), tallyOf(stream, 1), false).images, null, stream);
      assert.equal(readImageUsage(kept(bytes, true), tallyOf(stream, 1), false).images, 0, stream);
    }
  });
});

describe('usage', () => {
  const price = {
    version: '1',
    input: null,
    cachedInput: null,
    cacheWrite: null,
    output: null,
    image: picoUsd(40_000_000_000n),
  };

  function usageOf(body: string | Buffer, options: { cut?: boolean; clientLeft?: boolean } = {}) {
    const bytes = Buffer.from(body);
    return readImageUsage(
      kept(bytes, options.cut ?? false),
      feedAll(new ImageDocumentTally(), bytes, 7),
      options.clientLeft ?? false,
    );
  }

  test('is priced by images, and not by what is said of tokens', () => {
    for (const usage of [
      '',
      ',"usage":{"input_tokens":-1,"output_tokens":"many"}',
      ',"usage":{"input_tokens":10,"output_tokens":4160}',
      ',"usage":{"cost":1}',
    ]) {
      const checked = checkUsage(usageOf(`{"data":[{"url":"u"},{"url":"v"}]${usage}}`), NO_USAGE_BOUNDS);
      assert.ok(checked.ok);
      assert.equal(rateUsage(checked.usage, price), 80_000_000_000n);
    }
  });

  test('of a reply that broke off is its whole images; of one that the client left, also those begun', () => {
    const reply = '{"data":[{"b64_json":"AAAA"},{"b64_json":"BB';
    assert.equal(usageOf(reply, { cut: true }).images, 1);
    assert.equal(usageOf(reply, { cut: true, clientLeft: true }).images, 2);
  });

  test('of a whole reply in which no image is found says no number', () => {
    for (const body of ['{}', '{"images":[{}]}', '{"data":["u"]}', '{"data":[]}', '{"error":{"message":"no"}}', ''])
      assert.equal(usageOf(body).images, null, body);
    assert.equal(usageOf('{"created":1,', { cut: true }).images, 0);
    const usage = usageOf('{"usage":{"input_tokens":5,"output_tokens":7}}');
    assert.deepEqual([usage.inputTokens, usage.outputTokens], [5, 7]);
  });

  const recorded = sharedAssets('ruby-llm-images');
  const vercel = sharedAssets('vercel-ai', 'openai-image');
  test('of recorded replies', { skip: (recorded === null || vercel === null) && 'no recordings here' }, () => {
    const rows: readonly (readonly [string, readonly (number | null)[]])[] = [
      [`${recorded}/image_basic_functionality_openai_gpt-image-1_can_paint_images.0.resp.json`, [10, 4160, 1]],
      [`${recorded}/image_basic_functionality_xai_grok-imagine-image_can_paint_images.0.resp.json`, [null, null, 1]],
      [`${recorded}/image_edit_functionality_with_local_files_customizes_image_output.0.resp.json`, [221, 415, 1]],
      [`${vercel}/openai-image.json`, [null, null, 2]],
      [`${vercel}/openai-image-edit.json`, [null, null, 1]],
      [`${vercel}/gpt-image-response-format-error.json`, [null, null, null]],
    ];
    for (const [path, expected] of rows) {
      const body = readFileSync(path);
      const tally = new ImageDocumentTally();
      for (const piece of splitBytes(body, { kind: 'random', seed: 3, bytesMax: 65_536 })) tally.feed(piece);
      const usage = readImageUsage(kept(body), tally, false);
      assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.images], expected, path);
    }
  });

  test('recorded edits with image addresses are bounded as JSON', {
    skip: recorded === null && 'no recordings here',
  }, () => {
    const body = readFileSync(
      `${recorded}/image_edit_functionality_with_local_files_customizes_image_output.0.req.json`,
    );
    assert.deepEqual(boundsOfJson(body.toString()), bounded(1));
  });
});
