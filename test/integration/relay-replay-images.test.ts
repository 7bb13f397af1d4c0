// Byte for byte, for images: recorded generations and edits as JSON, and edits as forms, go through a whole
// gateway in pieces down to one byte; only the model's name changes, in a form the bytes of its part, and every image
// of the reply costs its price.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fillModel, findModelHole } from '../support/body-splices.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { type FormEntry, writeForm } from '../support/multipart-forms.ts';
import {
  assertRelayed,
  inParallel,
  modelsOf,
  type Replay,
  type ReplayInstallation,
  SEED,
  scriptReply,
  splitRequest,
  startReplayInstallation,
} from '../support/replays.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { decimalOfPico, KEYS } from '../support/test-configuration.ts';

const PICO_PER_IMAGE = 40_000_000_000n;

interface ImageReply {
  readonly name: string;
  readonly body: Buffer;
  readonly status: number;
}

interface RecordedImages {
  readonly name: string;
  readonly path: string;
  readonly request: Buffer;
  readonly reply: ImageReply;
}

interface IndexLine {
  readonly id: string;
  readonly url_path: string;
  readonly status: number;
  readonly req: string;
  readonly resp: string;
}

function loadRecordedImages(): RecordedImages[] {
  const folder = sharedAssets('ruby-llm-images');
  if (folder === null) return [];
  const lines = readFileSync(join(folder, 'index.jsonl'), 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => {
    const { id, url_path, status, req, resp } = JSON.parse(line) as IndexLine;
    return {
      name: id,
      path: url_path,
      request: readFileSync(join(folder, req)),
      reply: { name: id, body: readFileSync(join(folder, resp)), status },
    };
  });
}

function loadReplies(): ImageReply[] {
  const folder = sharedAssets('vercel-ai', 'openai-image');
  if (folder === null) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ name, body: readFileSync(join(folder, name)), status: name.includes('error') ? 400 : 200 }));
}

const recorded = loadRecordedImages();
const random = seededRandom(SEED);

/** Bytes that look like the end of a part again and again, and are none. */
function makeImage(bytes: number): Buffer {
  const image = Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)));
  for (let at = 11; at + 40 < bytes; at += 97)
    image.write('\r\n--b0undary\r\nContent-Disposition: form-data', at, 'latin1');
  return image;
}

const BOUNDARY = 'b0undary-7f3a';
const text = (name: string, value: string): FormEntry => ({ name, value });
const file = (name: string, filename: string, bytes: number): FormEntry => ({
  name,
  filename,
  headers: ['Content-Type: image/png'],
  value: makeImage(bytes),
});

/** Forms by their entries around the model. */
const FORMS: readonly {
  readonly name: string;
  readonly before: readonly FormEntry[];
  readonly after: readonly FormEntry[];
}[] = [
  { name: 'the model first', before: [], after: [text('prompt', 'a cat'), file('image[]', 'a.png', 900)] },
  {
    name: 'the model last',
    before: [file('image', 'cat.png', 70_000), text('prompt', 'wörds — ünd ☃'), text('n', '2')],
    after: [],
  },
  {
    name: 'several images and a mask',
    before: [text('prompt', 'join them'), file('image[]', '1.png', 40_000), file('image[]', '2.png', 1)],
    after: [
      file('image[]', '3 %22quoted%22.png', 250_000),
      file('mask', 'mask.png', 5_000),
      text('quality', 'high'),
      text('input_fidelity', 'low'),
    ],
  },
  {
    name: 'fields that look like the model',
    before: [text('prompt', 'name="model"\r\n\r\nfake')],
    after: [text('model_name', 'x'), file('image[]', 'model', 10)],
  },
];

function formReplay(index: number, { name, before, after }: (typeof FORMS)[number], reply: ImageReply): Replay {
  const bodyOf = (model: string): Buffer =>
    writeForm(BOUNDARY, [...before, text('model', model), ...after], { epilogue: '' });
  return makeReplay(
    index,
    `form: ${name}, ${reply.name}`,
    '/v1/images/edits',
    bodyOf,
    `multipart/form-data; boundary=${BOUNDARY}`,
    reply,
  );
}

function makeReplay(
  index: number,
  name: string,
  path: string,
  bodyOf: Replay['bodyOf'],
  contentType: string,
  reply: ImageReply,
): Replay {
  return {
    name,
    api: 'images',
    path,
    ...modelsOf('images', index),
    bodyOf,
    contentType,
    requestSplit: splitRequest(index, bodyOf('m').length),
    key: KEYS.acme,
    reply: scriptReply(reply.body, reply.status, 'application/json', false, index),
    replyContentType: 'application/json',
    stream: false,
    status: reply.status,
    expectedUsage: null,
  };
}

function makeReplays(): Replay[] {
  const replies = [...loadReplies(), ...recorded.map(({ reply }) => reply)];
  const asJson = recorded.map((exchange, index) => {
    const hole = findModelHole(exchange.request.toString('utf8'));
    return makeReplay(
      index,
      exchange.name,
      exchange.path,
      (model) => Buffer.from(fillModel(hole, model)),
      'application/json',
      exchange.reply,
    );
  });
  const asForm = FORMS.flatMap((form, row) =>
    replies.map((reply, column) => formReplay(100 + row * 20 + column, form, reply)),
  );
  return [...asJson, ...asForm];
}

const replays = makeReplays();

describe(`recorded images (TEST_SEED=${SEED})`, {
  skip: recorded.length === 0 ? 'no recordings beside the repository' : false,
}, () => {
  let installation: ReplayInstallation;

  before(async () => {
    installation = await startReplayInstallation(replays);
  });

  after(() => installation?.stop());

  test(`${replays.length} generations and edits, as JSON and as forms`, async () => {
    await inParallel(replays, async (replay) => {
      const { headers } = await assertRelayed(installation, replay);
      await assertImageBill(replay, String(headers['x-service-execution-id']));
    });
    assert.deepEqual(installation.upstream.violations, []);
  });

  async function assertImageBill(replay: Replay, id: string): Promise<void> {
    const record = await settledGeneration(installation.tollgate.url, KEYS.acme, id);
    const reply = JSON.parse(replay.reply.body.toString('utf8')) as {
      data?: unknown[];
      usage?: { input_tokens?: number; output_tokens?: number };
    };
    const images = replay.status === 200 ? (reply.data?.length ?? 0) : 0;
    // Held is the price of as many as were asked for; a provider that makes more is paid for by suspense.
    const asked = /name="n"\r\n\r\n2/.test(replay.bodyOf('m').toString('latin1')) ? 2 : 1;
    assert.equal(
      record.totalCost ?? '0',
      decimalOfPico(PICO_PER_IMAGE * BigInt(Math.min(images, asked))),
      `${replay.name}: charge`,
    );
    if (replay.status !== 200) return;
    assert.equal(record.ratedCost, decimalOfPico(PICO_PER_IMAGE * BigInt(images)), `${replay.name}: rated cost`);
    if (reply.usage?.input_tokens === undefined) return;
    assert.equal(record.tokensPrompt, String(reply.usage.input_tokens), `${replay.name}: input tokens`);
    assert.equal(record.tokensCompletion, String(reply.usage.output_tokens), `${replay.name}: output tokens`);
  }
});
