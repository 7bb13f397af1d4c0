// A human turn of auto routing over two gateway processes while its model is priced anew, searches and is taken away:
// every request of the turn is served, by one model as long as there is it, and costs what its price of then makes.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ask } from '../support/identity-world.ts';
import {
  ROUTING_ADMIN_TOKEN,
  type RoutedAnswer,
  type RoutedCall,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { waitFor } from '../support/waiting.ts';

const GATEWAY_PROCESSES = 2;
/** So many connections at once go to both processes, nearly always. */
const AT_ONCE = 12;
const judged = (words: string): string => `[[sim/systemone: ${words}]]`;
const LIGHT = judged('tier=light:0.95 kind=prose');
const STRONG = judged('tier=strong:0.95 kind=prose');
const CALLED = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: '{}' } }],
};
const DONE = { role: 'tool', tool_call_id: 'c', content: 'done' };

interface Posted {
  readonly epoch: string;
  readonly provider_model: string;
  readonly price_version: string;
  readonly input: bigint;
  readonly output: bigint;
  readonly charge: bigint;
}

describe('a turn whose model changes', () => {
  let routing: RoutingInstallation;
  before(async () => {
    routing = await startRoutingInstallation({ gatewayProcesses: GATEWAY_PROCESSES, clickhouse: 'away' });
  });
  after(() => routing?.stop());

  const admin = (method: string, path: string, body?: Readonly<Record<string, unknown>>) =>
    ask(routing.tollgate.url, ROUTING_ADMIN_TOKEN, method, `/v1/admin${path}`, body);
  const modelOf = (id: string) => admin('GET', `/models/${id}`);

  async function posted(answers: readonly RoutedAnswer[]): Promise<readonly Posted[]> {
    const ids = answers.map(({ executionId }) => executionId);
    const { rows } = await waitFor(
      'what was served to be posted',
      () =>
        routing.postgres.query<Record<keyof Posted, string>>(
          `SELECT epoch::text, provider_model, price_version, input_tokens::text AS input, output_tokens::text AS output,
                  charge::text FROM generations WHERE id = ANY ($1::uuid[]) AND charge IS NOT NULL`,
          [ids],
        ),
      (found) => found.rows.length === ids.length,
    );
    return rows.map(({ input, output, charge, ...row }) => ({
      ...row,
      input: BigInt(input),
      output: BigInt(output),
      charge: BigInt(charge),
    }));
  }

  /** The same request on many connections; all are served. */
  async function askAtOnce(call: RoutedCall): Promise<readonly RoutedAnswer[]> {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => routing.ask(call)));
    for (const { status, body } of answers) assert.equal(status, 200, body);
    return answers;
  }

  /** Both processes have served some of these, and this holds for all. */
  const ofBoth = (rows: readonly Posted[], holds: (row: Posted) => boolean): boolean =>
    rows.every(holds) && new Set(rows.map(({ epoch }) => epoch)).size === GATEWAY_PROCESSES;

  const modelsOf = (answers: readonly RoutedAnswer[]) => new Set(answers.map(({ model }) => model));

  test('priced anew: it stays, and each request costs what its price of then makes of it', async () => {
    const headers = { 'x-session-id': randomUUID() };
    const messages = [{ role: 'user', content: `Write on. [[sim: tokens=40]] ${LIGHT}` }];
    const first = await askAtOnce({ headers, body: { messages } });
    const slow = `Write slowly. [[sim: tokens=60 delay_ms=50]] ${LIGHT}`;
    const open = routing.ask({
      headers: { 'x-session-id': randomUUID() },
      body: { stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: slow }] },
    });
    const isOpen = () => routing.upstream.requests.some(({ body }) => body.includes('Write slowly.'));
    await waitFor('the stream to begin', () => Promise.resolve(isOpen()), Boolean);
    const { version } = await modelOf('sim/small');
    const price = { input: '0.75', output: '7.00' };
    await admin('PUT', '/prices', { model: 'sim/small', provider: 'upstream', price, version });
    const loop = { headers, body: { messages: [...messages, CALLED, DONE] } };
    const all = [...first];
    const versionsOf = async (): Promise<readonly Posted[]> => {
      const answers = await askAtOnce(loop);
      all.push(...answers);
      return posted(answers);
    };
    const before_ = (await posted(first))[0]?.price_version;
    await waitFor('both processes to have the price', versionsOf, (rows) =>
      ofBoth(rows, ({ price_version }) => price_version !== before_),
    );
    assert.deepEqual(modelsOf(all), new Set(['sim/small']));
    const streamed = await open;
    assert.equal(streamed.status, 200);
    for (const { price_version, input, output, charge } of await posted([...all, streamed])) {
      const [perInput, perOutput] = price_version === before_ ? [250_000n, 2_000_000n] : [750_000n, 7_000_000n];
      assert.equal(charge, input * perInput + output * perOutput);
    }
    assert.equal((await posted([streamed]))[0]?.price_version, before_);
  });

  test('with a price for searches at its second entry: who may search is served there, on both processes', async () => {
    const { id: _, version, served_by, ...large } = await modelOf('sim/large');
    const [entry] = served_by as readonly Readonly<Record<string, unknown>>[];
    assert.ok(entry);
    const searched = { input: '1.25', output: '10.00', calls: { web_search: { usd: '0.01', max: 4 } } };
    const entries = [entry, { ...entry, model: 'large-searched', price: searched }];
    await admin('PUT', '/models/sim/large', { ...large, served_by: entries, version });
    const headers = { 'x-session-id': randomUUID() };
    const input = `Look it up. ${STRONG}`;
    const search = { api: 'responses', headers, body: { input, tools: [{ type: 'web_search' }] } } as const;
    await waitFor(
      'both processes to have the entry',
      async () => posted(await askAtOnce(search)),
      (rows) => ofBoth(rows, ({ provider_model }) => provider_model === 'large-searched'),
    );
    const plain = await askAtOnce({ ...search, body: { input } });
    assert.deepEqual(new Set((await posted(plain)).map(({ provider_model }) => provider_model)), new Set(['large-1']));
    assert.deepEqual(modelsOf(plain), new Set(['sim/large']));
  });

  test('taken away: the nearest candidate serves the rest of the turn, the same on both processes', async () => {
    const headers = { 'x-session-id': randomUUID() };
    const messages = [{ role: 'user', content: `And on. [[sim: tokens=5]] ${LIGHT}` }];
    assert.deepEqual(modelsOf(await askAtOnce({ headers, body: { messages } })), new Set(['sim/small']));
    const judgedBefore = routing.judged().length;
    const { id: _, version, ...small } = await modelOf('sim/small');
    await admin('PUT', '/models/sim/small', { ...small, active: false, version });
    const loop = { headers, body: { messages: [...messages, CALLED, DONE] } };
    const models = new Set<string | null>();
    const served = await waitFor(
      'both processes to do without it',
      async () => {
        const answers = await askAtOnce(loop);
        for (const { model } of answers) models.add(model);
        return { answers, rows: await posted(answers) };
      },
      ({ answers, rows }) => !modelsOf(answers).has('sim/small') && ofBoth(rows, () => true),
    );
    assert.deepEqual(modelsOf(served.answers), new Set(['sim/coder']));
    for (const model of models) assert.ok(model === 'sim/small' || model === 'sim/coder', `served by ${model}`);
    assert.equal(routing.judged().length, judgedBefore, 'the turn is not classified again');
  });
});
