// A request is rated with the prices in force when it was admitted (spec 8): the price changes by `tollgate apply`
// while it is under way, and once more.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const USAGE = '"usage":{"prompt_tokens":40,"completion_tokens":10,"total_tokens":50}';
const EVENTS = [
  'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n',
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  `data: {"choices":[],${USAGE}}\n\n`,
  'data: [DONE]\n\n',
];

/**
 * Dollars per million tokens, in and out, and what 40 and 10 of them cost: 40 × in + 10 × out, six digits more in
 * pico-dollars.
 */
const FIRST = { input: '1.25', output: '10.00', costPico: '150000000' };
const SECOND = { input: '100', output: '7', costPico: '4070000000' };
const THIRD = { input: '0', output: '0.000001', costPico: '10' };

describe('a price that changes', { timeout: 180_000 }, () => {
  const waiting = new Map<string, () => void>();
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let ledger: LedgerView;
  let configurationYaml: string;

  before(async () => {
    upstream = await startFakeUpstream(async ({ body }) => {
      const name = /held-\w+/.exec(body.toString())?.[0];
      if (name !== undefined) await new Promise<void>((resolve) => waiting.set(name, resolve));
      const streamed = body.includes('"stream":true');
      return {
        headers: [['content-type', streamed ? 'text/event-stream' : 'application/json']],
        body: streamed ? EVENTS.join('') : `{"choices":[],${USAGE}}`,
      };
    });
    configurationYaml = testConfiguration({ upstreamUrl: upstream.url });
    tollgate = await startTollgate({ configurationYaml, gatewayProcesses: 2, clickhouse: 'away' });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    for (const resolve of waiting.values()) resolve();
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  function ask(
    content: string,
    { streamed, key = KEYS.acme }: { streamed: boolean; key?: string },
  ): Promise<HttpAnswer> {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'x-client-request-id': content,
    };
    const fields = streamed ? { stream: true, stream_options: { include_usage: true } } : {};
    const body = JSON.stringify({
      model: 'sim/small',
      messages: [{ role: 'user', content }],
      max_tokens: 100,
      ...fields,
    });
    return httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
  }

  async function execution(clientRequestId: string): Promise<LedgerRow> {
    const [row] = await waitFor(
      `${clientRequestId} to be posted`,
      () =>
        ledger.query(
          `SELECT charge::text, rated_cost::text, price_version FROM generations
            WHERE client_request_id = $1 AND outcome IS NOT NULL`,
          [clientRequestId],
        ),
      (rows) => rows.length === 1,
    );
    return row ?? {};
  }

  /** Resolves once every gateway rates with it. */
  async function change({ input, output, costPico }: typeof FIRST): Promise<void> {
    const path = `${tollgate.dataDir}/next.yaml`;
    writeFileSync(
      path,
      configurationYaml.replaceAll(/input: "1.25", (.*) output: "10.00"/g, `input: "${input}", $1 output: "${output}"`),
    );
    const applied = await tollgate.run(['apply', path]);
    assert.equal(applied.exitCode, 0, applied.output);
    let inRow = 0;
    for (let round = 0; inRow < 8; round += 1) {
      assert.ok(round < 200, 'the gateways never rated with the new price');
      const id = `probe-${costPico}-${round}`;
      assert.equal((await ask(id, { streamed: false })).status, 200);
      inRow = (await execution(id)).charge === costPico ? inRow + 1 : 0;
    }
  }

  const isHeld = (name: string) => waitFor(`${name} to be under way`, () => waiting.has(name), Boolean);

  test(
    'whoever was admitted before pays the old price, whenever it ends; whoever comes after pays the new ' + 'one',
    async () => {
      const first = [
        ask('held-stream', { streamed: true }),
        ask('held-whole', { streamed: false }),
        ask('held-free', { streamed: true, key: KEYS.free }),
      ];
      await Promise.all(['held-stream', 'held-whole', 'held-free'].map(isHeld));
      await change(SECOND);
      const second = ask('held-second', { streamed: true });
      await isHeld('held-second');
      await change(THIRD);
      for (const resolve of waiting.values()) resolve();
      for (const answer of await Promise.all([...first, second]))
        assert.deepEqual([answer.status, answer.complete], [200, true]);

      const versions: unknown[] = [];
      for (const [id, price] of [
        ['held-stream', FIRST],
        ['held-whole', FIRST],
        ['held-second', SECOND],
      ] as const) {
        const { charge, rated_cost, price_version } = await execution(id);
        assert.deepEqual([charge, rated_cost], [price.costPico, price.costPico], id);
        versions.push(price_version);
      }
      const free = await execution('held-free');
      assert.deepEqual([free.charge, free.rated_cost], [null, FIRST.costPico]);
      assert.equal((await ask('afterwards', { streamed: true })).status, 200);
      const afterwards = await execution('afterwards');
      assert.equal(afterwards.charge, THIRD.costPico);
      assert.equal(versions[0], versions[1]);
      assert.equal(
        new Set([versions[0], versions[2], afterwards.price_version]).size,
        3,
        'the record names the price that it was rated with',
      );
    },
  );

  test('the wallet has paid what was charged', async () => {
    const [row] = await ledger.query('SELECT sum(charge)::text AS charged FROM generations');
    assert.equal((await ledger.wallet('acme')).balance, OPENING_CREDIT_PICO - BigInt(String(row?.charged)));
  });
});
