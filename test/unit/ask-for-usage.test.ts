// `stream_usage: request` on a request: one edit, no other byte, whoever serves in the end.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Deployment, jsonModelId } from '../../src/generation/catalog/serving-catalog.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { ReadRequest } from '../../src/generation/dialects/dialect.ts';
import { askForUsage } from '../../src/generation/request/ask-for-usage.ts';
import { OutgoingRequest } from '../../src/generation/request/outgoing-request.ts';
import { readRequest } from '../../src/generation/request/read-request.ts';
import type { ReceivedRequest } from '../../src/generation/request/receive.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { BufferPool } from '../../src/platform/buffer-pool.ts';
import { fillModel, oddBody } from '../support/body-splices.ts';
import { seededRandom } from '../support/byte-splits.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
const scanner = new RequestScanner();

/** What a client wrote, and what the provider gets. */
const OPTIONS: readonly (readonly [written: string, sent: string])[] = [
  ['{}', '{"include_usage":true}'],
  ['{ \n}', '{ \n"include_usage":true}'],
  ['{"include_obfuscation":false}', '{"include_obfuscation":false,"include_usage":true}'],
  ['{ "a" : {"include_usage":true} }', '{ "a" : {"include_usage":true} ,"include_usage":true}'],
  ['{"include_usage":true}', '{"include_usage":true}'],
  ['{"b":"\\"}","include_usage" :\ttrue }', '{"b":"\\"}","include_usage" :\ttrue }'],
  // The client said no, and the operator has opted in.
  ['{"include_usage":false}', '{"include_usage":true}'],
  ['{"include_usage" : null , "b":[1,{"c":"]"}]}', '{"include_usage" : true , "b":[1,{"c":"]"}]}'],
  ['{"include_usage":{"a":[1,"}"]} ,"b":1}', '{"include_usage":true ,"b":1}'],
  // Some providers take a 0 for false.
  ['{"include_usage":0}', '{"include_usage":true}'],
  ['{"include\\u005fusage":false}', '{"include\\u005fusage":true}'],
  ['{"include_usage":true,"include_usage":false}', '{"include_usage":true,"include_usage":true}'],
  [
    '{"include_usage":0,"include_usage":true , "include_usage":"" }',
    '{"include_usage":true,"include_usage":true , "include_usage":true }',
  ],
  ['null', '{"include_usage":true}'],
  ['"{}"', '{"include_usage":true}'],
  ['[{"include_usage":true}]', '{"include_usage":true}'],
  [`{"pad":"${'p'.repeat(5_000)}","include_usage":false}`, '{"include_usage":true}'],
];

/**
 * A request with these options before the model, behind it, or without any; `sent` has the provider's name for the
 * model.
 */
interface Case {
  readonly received: string;
  readonly sentTo: (model: string, asked: boolean) => string;
}

function casesOf(written: string, sent: string): Case[] {
  return [true, false].map((isBefore) => {
    const body = (model: string, options: string): string =>
      isBefore
        ? ` {"stream_options" :${options} ,"messages":[{"content":"{}"}],"model":${JSON.stringify(model)},"stream":true}`
        : `{"model":${JSON.stringify(model)},"stream":true,"messages":[], "stream\\u005foptions":${options} } \n`;
    return { received: body('public/model', written), sentTo: (model, asked) => body(model, asked ? sent : written) };
  });
}

const odd = oddBody({ stream: true });
const CASES: readonly Case[] = [
  ...OPTIONS.flatMap(([written, sent]) => casesOf(written, sent)),
  { received: fillModel(odd, 'm'), sentTo: (model, asked) => withoutOptions(fillModel(odd, model), asked) },
  {
    received: '{"model":"m","stream":true}',
    sentTo: (model, asked) => withoutOptions(`{"model":${JSON.stringify(model)},"stream":true}`, asked),
  },
];

function withoutOptions(body: string, asked: boolean): string {
  const close = body.lastIndexOf('}');
  return asked ? `${body.slice(0, close)},"stream_options":{"include_usage":true}${body.slice(close)}` : body;
}

const deployment = (model: string, asksForUsage: boolean): Deployment =>
  ({
    modelJson: jsonModelId(model),
    insteadOfModel: null,
    modelText: Buffer.from(model),
    asksForUsage,
  }) as Partial<Deployment> as Deployment;

/** What goes to the provider of a deployment. */
function sentOf(
  { request, read }: Received,
  to: Deployment,
): { readonly text: string; readonly asksForUsage: boolean } {
  const outgoing = new OutgoingRequest(request, read);
  const { pieces } = outgoing.bodyFor(to);
  return { text: Buffer.concat(pieces).toString(), asksForUsage: outgoing.asksForUsage };
}

interface Received {
  readonly request: ReceivedRequest;
  readonly read: ReadRequest;
}

function requestOf(received: string): Received {
  const bytes = Buffer.from(received);
  const pooled = new BufferPool().acquire(bytes.length);
  pooled.buffer.fill(0xaa);
  bytes.copy(pooled.buffer);
  const body = pooled.buffer.subarray(0, bytes.length);
  const request = { pooled, body, scanned: scanner.scan(body), form: null };
  const read = readRequest(chatCompletions, request);
  assert.ok(!('kind' in read), received);
  return { request, read };
}

describe('asking for usage', () => {
  for (const [written, sent] of OPTIONS) {
    test(`stream_options ${written.slice(0, 70)}`, () => {
      for (const { received, sentTo } of casesOf(written, sent)) {
        const request = requestOf(received);
        const attempt = sentOf(request, deployment('a', true));
        assert.equal(attempt.text, sentTo('a', true));
        // Only where something was written is there something to keep from the client.
        assert.equal(attempt.asksForUsage, written !== sent);
        const parsed = JSON.parse(attempt.text) as { stream_options: unknown };
        assert.equal((parsed.stream_options as { include_usage: unknown }).include_usage, true);
      }
    });
  }

  test('options that are not there are appended', () => {
    assert.deepEqual(askForUsage(Buffer.from('{"model":"m"} \n'), null), {
      start: 12,
      end: 12,
      replacement: Buffer.from(',"stream_options":{"include_usage":true}'),
    });
  });

  test('each byte of the options is looked at a few times, however many blanks there are', () => {
    for (const blanks of [1_000, 4_000]) {
      const options = `{"include_usage":false${' '.repeat(blanks)}}`;
      const bytes = Buffer.from(`{"stream_options":${options}}`);
      let looks = 0;
      const body = new Proxy(bytes, {
        get(target, name) {
          if (typeof name === 'string' && /^\d+$/.test(name)) looks += 1;
          const value: unknown = Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      const start = bytes.indexOf(options);
      assert.equal(askForUsage(body, { start, end: start + options.length })?.replacement.toString(), 'true');
      assert.ok(looks <= 10 * bytes.length, `${looks} looks at ${bytes.length} bytes`);
    }
  });

  test('a request without a stream is left as it is', () => {
    for (const stream of ['"stream":false', '"stream":null', '"n":1']) {
      const request = requestOf(`{"model":"m",${stream},"stream_options":{"include_usage":false}}`);
      assert.deepEqual(sentOf(request, deployment('other', true)), {
        text: `{"model":"other",${stream},"stream_options":{"include_usage":false}}`,
        asksForUsage: false,
      });
    }
  });

  test(`each of several deployments gets its own body, from the client's bytes (TEST_SEED=${SEED})`, () => {
    const random = seededRandom(SEED);
    for (let round = 0; round < 40; round++) {
      for (const { received, sentTo } of CASES) {
        const request = requestOf(received);
        for (let attempt = 0; attempt < 4; attempt++) {
          const model = 'm'.repeat(1 + Math.floor(random() ** 3 * 2_000));
          const asks = random() < 0.5;
          const attempt = sentOf(request, deployment(model, asks));
          assert.equal(attempt.text, sentTo(model, asks));
          assert.equal(attempt.asksForUsage, sentTo(model, true) !== sentTo(model, false) && asks);
          assert.equal(request.request.body.toString(), received);
        }
      }
    }
  });
});
