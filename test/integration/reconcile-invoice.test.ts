// `tollgate reconcile invoice` on a real installation: what a gateway recorded of real requests, against an export that
// a vendor would make of them.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { openLedgerView } from '../support/ledger-view.ts';
import { KEYS, PICO_PER_TOKEN, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const REQUESTS = 6;
const USAGE = { prompt_tokens: 1_000, completion_tokens: 200, prompt_tokens_details: { cached_tokens: 400 } };
const DAY_MS = 86_400_000;

describe('tollgate reconcile invoice', () => {
  let upstream: FakeUpstream;
  let front: Front;
  let dayMs: number;
  let reply: Script;

  before(async () => {
    upstream = await startFakeUpstream(() => reply);
    front = await startFront({
      configurationYaml: testConfiguration({
        upstreamUrl: upstream.url,
        models: [{ id: 'sim/small', providerModel: 'gpt-5.6-terra', outputCap: 16_384 }],
      }),
    });
    const completion = {
      id: 'c',
      object: 'chat.completion',
      model: 'x',
      usage: USAGE,
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }],
    };
    const json = [['content-type', 'application/json']] as const;
    reply = { headers: json, body: JSON.stringify(completion) };
    // All of them belong to one day of the bill.
    const untilMidnightMs = DAY_MS - (Date.now() % DAY_MS);
    if (untilMidnightMs < 60_000) await delay(untilMidnightMs);
    for (let asked = 0; asked < REQUESTS; asked++) assert.equal((await ask()).status, 200);
    // What the provider answers with an error is on no bill.
    reply = { status: 500, headers: json, body: '{"error":{"message":"down"}}' };
    await ask();
    const ledger = openLedgerView(front.postgresUrl);
    const rows = await waitFor(
      'all executions to be posted',
      () =>
        ledger.query(
          "SELECT (extract(epoch FROM admitted_at) * 1000)::double precision AS at FROM generations WHERE outcome = 'completed' ORDER BY id",
        ),
      (found) => found.length === REQUESTS,
    );
    await ledger.close();
    dayMs = Math.floor(Number(rows[0]?.['at']) / DAY_MS) * DAY_MS;
  });
  after(async () => {
    await front?.stop();
    await upstream?.close();
  });

  const ask = () =>
    httpCall(`${front.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/small', max_tokens: 500, messages: [{ role: 'user', content: 'hi' }] }),
    });

  /** Usage and costs of the day, in one file. */
  function fileOf(name: string, output: number, outputRate: bigint): string {
    const group = { api_key_id: 'key_1', model: 'gpt-5.6-terra-2026-07-14', batch: false, service_tier: 'default' };
    const input = (USAGE.prompt_tokens - 400) * REQUESTS;
    const cached = 400 * REQUESTS;
    const bucket = (results: readonly object[]) => ({
      object: 'page',
      data: [{ object: 'bucket', start_time: dayMs / 1_000, end_time: (dayMs + DAY_MS) / 1_000, results }],
      has_more: false,
      next_page: null,
    });
    const cost = (item: string, pico: bigint) => ({
      object: 'organization.costs.result',
      amount: { value: Number(pico) / 1e12, currency: 'usd' },
      line_item: `gpt-5.6-terra-2026-07-14, ${item}`,
      api_key_id: 'key_1',
    });
    const pages = [
      bucket([
        {
          object: 'organization.usage.completions.result',
          input_tokens: input + cached,
          input_cached_tokens: cached,
          output_tokens: output,
          num_model_requests: REQUESTS,
          ...group,
        },
      ]),
      bucket([
        cost('input', BigInt(input) * PICO_PER_TOKEN.input),
        cost('cached input', BigInt(cached) * PICO_PER_TOKEN.cachedInput),
        cost('output', BigInt(output) * outputRate),
      ]),
    ];
    const path = join(front.dataDir, name);
    writeFileSync(path, pages.map((page) => JSON.stringify(page, null, 2)).join('\n'));
    return path;
  }

  const OUTPUT = USAGE.completion_tokens * REQUESTS;
  const reconcile = (...args: readonly string[]) =>
    front.run(['reconcile', 'invoice', 'openai', '--provider', 'upstream', ...args]);

  test('what was billed as it was used is the same, and says so', async () => {
    const found = await reconcile(fileOf('same.json', OUTPUT, PICO_PER_TOKEN.output));
    assert.equal(found.exitCode, 0, found.output);
    assert.match(found.output, /^openai, \S+ to \S+ \(1 day\), recorded for upstream$/m);
    assert.match(found.output, /ours 0\.0168 USD, theirs 0\.0168 USD/);
    assert.match(found.output, /1 of 1 rows are the same$/m);
  });

  test('another price and further tokens are named, as a table, as JSON and as CSV', async () => {
    const file = fileOf('other.json', OUTPUT + 30, PICO_PER_TOKEN.output + 2_000_000n);
    const found = await reconcile(file);
    assert.equal(found.exitCode, 1, found.output);
    assert.match(found.output, /outside \(\+0\.0003\): the key is used outside the gateway too: output \+30/);
    assert.match(found.output, /price \(\+0\.00246\): another price: output: theirs 12 USD per million, ours 10/);
    const json = JSON.parse((await reconcile(file, '--json')).output) as {
      within_tolerance: boolean;
      rows: { difference_usd: string; causes: { kind: string }[] }[];
    };
    assert.equal(json.within_tolerance, false);
    assert.deepEqual(
      json.rows.map(({ difference_usd: usd, causes }) => [usd, causes.map(({ kind }) => kind)]),
      [['0.00276', ['outside', 'price']]],
    );
    const [head = '', line = ''] = (await reconcile(file, '--csv')).output.split('\r\n');
    assert.match(head, /^day,model,key,ours_requests,ours_input,/);
    assert.match(line, /,0\.00276,false,"outside, price",/);
    assert.equal((await reconcile(file, '--tolerance', '0.01')).exitCode, 0);
    assert.equal((await reconcile(file, '--tolerance', '1%')).exitCode, 1);
  });

  test('a day that the export leaves out', async () => {
    const day = new Date(dayMs + DAY_MS).toISOString().slice(0, 10);
    const file = fileOf('short.json', OUTPUT, PICO_PER_TOKEN.output);
    assert.equal((await reconcile(file, '--end-date', day)).exitCode, 0);
    const first = new Date(dayMs - DAY_MS).toISOString().slice(0, 10);
    const only = await reconcile(file, '--start-date', first, '--end-date', first);
    assert.equal(only.exitCode, 0, only.output);
    assert.match(only.output, /0 of 0 rows/);
  });

  test('what cannot be read is told with its place, and is exit code 2', async () => {
    const broken = join(front.dataDir, 'broken.json');
    writeFileSync(broken, '{"data": [\n  {"results": }\n]}');
    const file = fileOf('fine.json', OUTPUT, PICO_PER_TOKEN.output);
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[broken], /broken\.json: line 2, column 15: not JSON/],
      [[join(front.dataDir, 'absent.json')], /cannot read .*absent\.json: ENOENT/],
      [[file, '--key', 'key_1=nobody'], /nothing was recorded for "nobody".*there are upstream/],
      [[file, '--provider', 'upstraem'], /--provider upstraem: there is no such provider.*there are upstream/],
      [[file, '--model', 'gpt'], /it takes THEIRS=OURS/],
      [[file, '--tolerance', 'little'], /it takes dollars/],
      [[file, '--start-date', 'Sunday'], /it takes a day/],
      [[file, '--json', '--csv'], /exclude each other/],
      [[], /FILE is missing/],
    ];
    for (const [args, problem] of cases) {
      const found = await reconcile(...args);
      assert.equal(found.exitCode, 2, found.output);
      assert.match(found.output, problem);
    }
    const unnamed = await front.run(['reconcile', 'invoice', 'anthropic', file]);
    assert.equal(unnamed.exitCode, 2);
    assert.match((await front.run(['reconcile', 'invoice', 'openai', file])).output, /no provider is at the address/);
    assert.match((await front.run(['reconcile', 'invoice', 'acme', file])).output, /unknown vendor "acme"/);
  });
});
