// No report of a provider ever becomes a credit: counts that are none, in every place of every dialect's usage, JSON
// and stream, through the whole installation to the posted charge. What cannot be a count is set aside and what was
// relayed is counted instead; what is too much stops at the hold.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { expectedCostPico, KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

/** As they stand in the bytes: JSON or not. */
const HOSTILE = [
  '-1',
  'NaN',
  '1e400',
  '-1e400',
  '9223372036854775808',
  '-9223372036854775808',
  '"12"',
  '1.5',
  'true',
  '{}',
  '[]',
  '"-Infinity"',
] as const;
const HUGE = '9007199254740991';
const ABSENT = '';
const GOOD = { input: '40', output: '3' } as const;

interface Counts {
  readonly input: string;
  readonly output: string;
}

interface Form {
  readonly name: string;
  readonly path: string;
  readonly streamed: boolean;
  /** `label` says which case a request is, where no tokenizer reads it. */
  body(label: string): string;
  reply(counts: Counts): Script;
}

const OUTPUT_MAX = 50;
const TEXT = 'Hello there, friend.';
const json = (body: string): Script => ({ headers: [['content-type', 'application/json']], body });
const stream = (...events: readonly string[]): Script => ({
  headers: [['content-type', 'text/event-stream']],
  body: events.join(''),
});
/** `"name":text`; nothing where there is none. */
const fields = (entries: readonly (readonly [name: string, text: string])[]): string =>
  entries
    .filter(([, text]) => text !== ABSENT)
    .map(([name, text]) => `"${name}":${text}`)
    .join();
const usage = ({ input, output }: Counts, names: readonly [string, string]): string =>
  `{${fields([
    [names[0], input],
    [names[1], output],
  ])}}`;
const CHAT = ['prompt_tokens', 'completion_tokens'] as const;
const PLAIN = ['input_tokens', 'output_tokens'] as const;

const FORMS: readonly Form[] = [
  {
    name: 'chat completions',
    path: '/v1/chat/completions',
    streamed: false,
    body: (label) =>
      JSON.stringify({
        model: 'sim/small',
        user: label,
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: OUTPUT_MAX,
      }),
    reply: (counts) =>
      json(
        `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"${TEXT}"}}],"usage":${usage(counts, CHAT)}}`,
      ),
  },
  {
    name: 'chat completions, streamed',
    path: '/v1/chat/completions',
    streamed: true,
    body: (label) =>
      JSON.stringify({
        model: 'sim/small',
        user: label,
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: OUTPUT_MAX,
        stream: true,
        stream_options: { include_usage: true },
      }),
    reply: (counts) =>
      stream(
        `data: {"choices":[{"index":0,"delta":{"content":"${TEXT}"}}]}\n\n`,
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        `data: {"choices":[],"usage":${usage(counts, CHAT)}}\n\n`,
        'data: [DONE]\n\n',
      ),
  },
  {
    name: 'responses',
    path: '/v1/responses',
    streamed: false,
    body: (label) =>
      JSON.stringify({ model: 'sim/small', user: label, input: 'hi', max_output_tokens: OUTPUT_MAX, store: false }),
    reply: (counts) =>
      json(
        `{"id":"resp_1","output":[{"type":"message","content":[{"type":"output_text","text":"${TEXT}"}]}],"usage":${usage(counts, PLAIN)}}`,
      ),
  },
  {
    name: 'responses, streamed',
    path: '/v1/responses',
    streamed: true,
    body: (label) =>
      JSON.stringify({
        model: 'sim/small',
        user: label,
        input: 'hi',
        max_output_tokens: OUTPUT_MAX,
        store: false,
        stream: true,
      }),
    reply: (counts) =>
      stream(
        `event: response.output_text.delta\ndata: ` +
          `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"${TEXT}"}\n\n`,
        `event: response.completed\ndata: ` +
          `{"type":"response.completed","response":{"id":"resp_1","usage":${usage(counts, PLAIN)}}}\n\n`,
      ),
  },
  {
    name: 'messages',
    path: '/v1/messages',
    streamed: false,
    body: (label) =>
      JSON.stringify({
        model: 'sim/small',
        metadata: { user_id: label },
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: OUTPUT_MAX,
      }),
    reply: (counts) =>
      json(
        `{"id":"msg_1","type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"${TEXT}"}],"usage":${usage(counts, PLAIN)}}`,
      ),
  },
  {
    name: 'messages, streamed',
    path: '/v1/messages',
    streamed: true,
    body: (label) =>
      JSON.stringify({
        model: 'sim/small',
        metadata: { user_id: label },
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: OUTPUT_MAX,
        stream: true,
      }),
    reply: ({ input, output }) =>
      stream(
        `event: message_start\ndata: ` +
          `{"type":"message_start","message":{"id":"msg_1","content":[],"stop_reason":null,"usage":{${fields([['input_tokens', input]])}}}}\n\n`,
        `event: content_block_delta\ndata: ` +
          `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${TEXT}"}}\n\n`,
        `event: message_delta\ndata: ` +
          `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{${fields([['output_tokens', output]])}}}\n\n`,
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ),
  },
];

const IMAGE = 'sim/image';
const IMAGE_PICO = 40_000_000_000n;
const JUDGE = 'sim/judge';
const MODELS = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: ['chat_completions', 'responses', 'messages'] },
  { id: IMAGE, providerModel: 'image', outputCap: null, kind: 'image', apis: ['images'] },
  { id: JUDGE, providerModel: 'judge', outputCap: null, kind: 'evaluation', apis: ['systemone'] },
] as const;

interface Posted {
  readonly outcome: string;
  readonly status: string;
  readonly source: string | null;
  readonly charge: bigint;
  readonly suspense: bigint;
  readonly held: bigint;
  readonly input: string | null;
  readonly output: string | null;
  readonly errorCode: string | null;
}

describe('a provider that reports nonsense', { timeout: 300_000 }, () => {
  const replies = new Map<string, Script>();
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;
  let labels = 0;

  before(async () => {
    upstream = await startFakeUpstream(
      ({ body }) => replies.get(/case-\d+-/.exec(body.toString())?.[0] ?? '') ?? { instead: 'close' },
    );
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: MODELS }),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  async function post(
    path: string,
    body: (label: string) => string,
    reply: Script,
    key: string = KEYS.acme,
  ): Promise<Posted> {
    labels += 1;
    const label = `case-${labels}-`;
    replies.set(label, reply);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await httpCall(`${tollgate.url}${path}`, { headers, body: body(label) });
    assert.deepEqual([answer.status, answer.complete], [200, true], answer.body.toString());
    assert.ok('body' in reply && answer.body.equals(Buffer.from(reply.body)), 'relayed as it came');
    const id = answer.headers['x-service-execution-id'];
    const [row] = await waitFor(
      `execution ${String(id)} to be posted`,
      () =>
        ledger.query(
          `SELECT outcome, billing_status, usage_source, charge::text, suspense::text, authorized_amount::text AS held,
            input_tokens::text AS input, output_tokens::text AS output, error_code
             FROM generations WHERE id = $1 AND outcome IS NOT NULL`,
          [id],
        ),
      (rows) => rows.length === 1,
    );
    const text = (value: LedgerRow[string] | undefined): string | null =>
      value === null || value === undefined ? null : String(value);
    return {
      outcome: String(row?.outcome),
      status: String(row?.billing_status),
      source: text(row?.usage_source),
      charge: BigInt(String(row?.charge ?? 0)),
      suspense: BigInt(String(row?.suspense)),
      held: BigInt(String(row?.held ?? 0)),
      input: text(row?.input),
      output: text(row?.output),
      errorCode: text(row?.error_code),
    };
  }

  for (const form of FORMS) {
    // At once, because each waits to be posted.
    describe(form.name, { concurrency: 8 }, () => {
      const send = (counts: Counts): Promise<Posted> =>
        post(form.path, (label) => form.body(label), form.reply(counts));
      let counted: Posted;
      before(async () => {
        counted = await send({ input: ABSENT, output: ABSENT });
      });

      test('counted, where nothing is reported', () => {
        assert.deepEqual(
          [counted.outcome, counted.status, counted.source, counted.suspense],
          ['completed_without_usage', 'final', 'counted', 0n],
        );
        const [input, output] = [Number(counted.input), Number(counted.output)];
        assert.ok(input > 0 && output > 0);
        assert.equal(counted.charge, expectedCostPico({ input, cached: 0, output }));
      });

      test('a good report is what is charged', async () => {
        const posted = await send(GOOD);
        assert.deepEqual(
          [posted.outcome, posted.source, posted.charge],
          ['completed', 'reported', expectedCostPico({ input: 40, cached: 0, output: 3 })],
        );
      });

      test('null is not reported, and of half a report the other half is counted', async () => {
        assert.deepEqual(moneyOf(await send({ input: 'null', output: 'null' })), moneyOf(counted));
        for (const input of ['null', ABSENT]) {
          const posted = await send({ input, output: '7' });
          const expected = expectedCostPico({ input: Number(counted.input), cached: 0, output: 7 });
          assert.deepEqual(
            [posted.source, posted.input, posted.output, posted.charge],
            ['counted', counted.input, '7', expected],
            `input ${input}`,
          );
        }
        for (const output of ['null', ABSENT]) {
          const posted = await send({ input: '40', output });
          const expected = expectedCostPico({ input: 40, cached: 0, output: Number(counted.output) });
          assert.deepEqual(
            [posted.source, posted.input, posted.output, posted.charge],
            ['counted', '40', counted.output, expected],
            `output ${output}`,
          );
        }
      });

      for (const value of HOSTILE) {
        test(`${value}: counted, no credit, nothing in suspense`, async () => {
          for (const counts of [
            { input: value, output: value },
            { input: value, output: GOOD.output },
            { input: GOOD.input, output: value },
          ]) {
            const posted = await send(counts);
            const asked = JSON.stringify(counts);
            // No JSON at all: what cannot be read cannot be counted either, and the bound of its output is used, as
            // ever where a count fails.
            if (value === 'NaN' && !form.streamed) {
              assert.deepEqual(
                [posted.status, posted.source, posted.output, posted.suspense],
                ['final', 'counted', String(OUTPUT_MAX), 0n],
                asked,
              );
              continue;
            }
            // The two halves of a stream's usage stand in events of their own: where one of them is no JSON, the other
            // is good.
            const isHalf = value === 'NaN' && form.name === 'messages, streamed';
            const expected = expectedCostPico({
              input: isHalf && counts.input === GOOD.input ? 40 : Number(counted.input),
              cached: 0,
              output: isHalf && counts.output === GOOD.output ? 3 : Number(counted.output),
            });
            assert.deepEqual(
              [posted.status, posted.source, posted.charge, posted.suspense],
              ['final', 'counted', expected, 0n],
              asked,
            );
          }
        });
      }

      test('more than was held: the hold, and the rest in suspense', async () => {
        for (const counts of [
          { input: HUGE, output: HUGE },
          { input: HUGE, output: GOOD.output },
          { input: GOOD.input, output: HUGE },
        ]) {
          const posted = await send(counts);
          const claimed = expectedCost(counts);
          assert.deepEqual(
            [posted.status, posted.charge, posted.suspense],
            ['final', posted.held, claimed - posted.held],
            JSON.stringify(counts),
          );
        }
      });
    });
  }

  test('images are charged by the image, whatever is said of tokens', async () => {
    const body = (label: string): string => JSON.stringify({ model: IMAGE, user: label, prompt: 'a cat' });
    const checkImages = async (value: string): Promise<void> => {
      const reported = usage({ input: value, output: value }, PLAIN);
      const posted = await post(
        '/v1/images/generations',
        body,
        json(`{"created":1,"data":[{"b64_json":"aGk="}],"usage":${reported}}`),
      );
      assert.deepEqual([posted.status, posted.charge, posted.suspense], ['final', IMAGE_PICO, 0n], value);
      const streamed = await post(
        '/v1/images/generations',
        (label) => JSON.stringify({ model: IMAGE, user: label, prompt: 'a cat', stream: true }),
        stream(
          `event: image_generation.completed\ndata: ` +
            `{"type":"image_generation.completed","b64_json":"aGk=","usage":${reported}}\n\n`,
        ),
      );
      assert.deepEqual(
        [streamed.status, streamed.charge, streamed.suspense],
        ['final', IMAGE_PICO, 0n],
        `${value}, streamed`,
      );
    };
    await Promise.all([...HOSTILE, HUGE, 'null', ABSENT].map(checkImages));
  });

  test('images: a whole reply in which none is found costs nothing, and is an alarm', async () => {
    const ask = (reply: Parameters<typeof post>[2], streamed: boolean): Promise<Posted> =>
      post(
        '/v1/images/generations',
        (label) => JSON.stringify({ model: IMAGE, user: label, prompt: 'a cat', stream: streamed }),
        reply,
      );
    const partial = 'data: {"type":"image_generation.partial_image","b64_json":"aGk="}\n\n';
    for (const reply of [
      await ask(stream('data: {"type":"image.done","b64_json":"aGk="}\n\n'), true),
      await ask(stream(`${partial}data: [DONE]\n\n`), true),
      await ask(json('{"created":1,"images":[{"b64_json":"aGk="}]}'), false),
      await ask(json('{"created":1,"images":[{"b64_json":"aGk="}]}'), true),
      await ask(json('{"created":1,"data":[],"usage":{"input_tokens":9,"output_tokens":0}}'), false),
    ]) {
      assert.deepEqual([reply.outcome, reply.source, reply.charge], ['completed_without_usage', null, 0n]);
      assert.match(String(reply.errorCode), /^usage_missing: /);
    }
  });

  test('typed questions: nothing to count instead, so nothing is charged; never a credit', async () => {
    const body = (label: string): string =>
      JSON.stringify({
        model: JUDGE,
        state: label,
        questions: { q: { type: 'choice', instructions: 'Is it?', criteria: { yes: null, no: null } } },
      });
    const checkQuestions = async (value: string): Promise<void> => {
      const posted = await post(
        '/v1/systemone',
        body,
        json(`{"answers":{},"usage":{"input_tokens":${value},"output_tokens":1}}`),
      );
      assert.deepEqual([posted.status, posted.charge, posted.suspense], ['final', 0n, 0n], value);
    };
    await Promise.all(HOSTILE.map(checkQuestions));
    const huge = await post(
      '/v1/systemone',
      body,
      json(`{"answers":{},"usage":{"input_tokens":${HUGE},"output_tokens":1}}`),
    );
    assert.deepEqual(
      [huge.status, huge.charge, huge.suspense],
      ['final', huge.held, BigInt(HUGE) * 42_000n - huge.held],
    );
  });

  test('typed questions: the input is charged where nothing is said of the output, and none at all is an alarm', async () => {
    const body = (label: string): string =>
      JSON.stringify({ model: JUDGE, state: label, questions: { q: { type: 'noul', instructions: 'Is it?' } } });
    const ask = (counts: string): Promise<Posted> =>
      post('/v1/systemone', body, json(`{"answers":{"q":{"type":"noul","noul":0.5}}${counts}}`));
    for (const counts of ['"input_tokens":40', '"input_tokens":40,"output_tokens":null']) {
      const { source, input, charge, errorCode } = await ask(`,"usage":{${counts}}`);
      assert.deepEqual([source, input, charge, errorCode], ['reported', '40', 40n * 42_000n, null], counts);
    }
    for (const none of ['', ',"usage":null', ',"usage":{}', ',"usage":{"output_tokens":3}']) {
      const { outcome, source, charge, errorCode } = await ask(none);
      assert.deepEqual([outcome, source, charge], ['completed_without_usage', null, 0n], none);
      assert.match(String(errorCode), /^usage_missing: /, none);
    }
  });

  test('of who is not billed nothing is charged, and what no such request can use is in suspense, too', async () => {
    const [form] = FORMS;
    assert.ok(form);
    const ask = (body: (label: string) => string, counts: Counts) =>
      post(form.path, body, form.reply(counts), KEYS.free);
    const good = await ask((label) => form.body(label), GOOD);
    assert.deepEqual([good.status, good.charge, good.suspense], ['not_billed', 0n, 0n]);
    const claimed = { input: HUGE, output: GOOD.output };
    const huge = await ask((label) => form.body(label), claimed);
    // The text of the request is no longer than a hundred tokens.
    assert.ok(huge.suspense > expectedCost(claimed) - 10n ** 9n, String(huge.suspense));
    assert.deepEqual([huge.status, huge.charge], ['not_billed', 0n]);
  });

  test('the wallet has paid exactly what was charged, and never got anything', async () => {
    const [row] = await ledger.query(
      `SELECT (SELECT sum(charge)::text FROM generations) AS charged,
              (SELECT count(*)::int FROM ledger_entries e JOIN ledger_accounts a ON a.id = e.account_id
                 JOIN ledger_transfers t ON t.id = e.transfer_id WHERE a.kind = 'wallet' AND t.execution_id IS NOT NULL
                   AND e.amount > 0) AS credits,
              (SELECT count(*)::int FROM generations WHERE charge < 0 OR suspense < 0
                OR charge > authorized_amount) AS wrong`,
    );
    assert.deepEqual([row?.credits, row?.wrong], [0, 0]);
    assert.equal((await ledger.wallet('acme')).balance, OPENING_CREDIT_PICO - BigInt(String(row?.charged)));
  });
});

function moneyOf({ status, source, charge, suspense }: Posted): unknown {
  return { status, source, charge, suspense };
}

function expectedCost({ input, output }: Counts): bigint {
  return BigInt(input) * 1_250_000n + BigInt(output) * 10_000_000n;
}
