// A disk that takes no more of the spool while replies are under way: what cannot be recorded is never shown as
// complete, nothing more is admitted or sent, the process lives on, and the money that it cannot account for stays held
// until the epoch is closed.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { readGauges } from '../support/gateway-gauges.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { type RawProvider, startRawProvider } from '../support/raw-provider.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const PRELOAD = new URL('../support/fake-full-disk.ts', import.meta.url);
const TEXT_APIS = ['chat_completions', 'responses', 'messages'] as const;

interface Case {
  readonly name: string;
  readonly path: string;
  readonly fields: object;
  readonly stream: boolean;
  /** The provider's reply, before and after the disk is full. */
  readonly first: string;
  readonly rest: string;
}

const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const chunk = (fields: object): string => `data: ${JSON.stringify({ object: 'chat.completion.chunk', ...fields })}\n\n`;
const DELTA = chunk({ choices: [{ index: 0, delta: { content: 'Hello' } }] });
const FINISH = chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const CHAT_USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const USAGE = { input_tokens: 3, output_tokens: 2 };
const CHAT = { messages: [{ role: 'user', content: 'hi' }] };

const CASES: readonly Case[] = [
  {
    name: 'chat completions, streamed',
    path: '/v1/chat/completions',
    fields: { ...CHAT, stream: true },
    stream: true,
    first: DELTA,
    rest: `${FINISH}${chunk({ choices: [], usage: CHAT_USAGE })}data: [DONE]\n\n`,
  },
  {
    name: 'chat completions, streamed without usage',
    path: '/v1/chat/completions',
    fields: { ...CHAT, stream: true },
    stream: true,
    first: DELTA,
    rest: `${FINISH}data: [DONE]\n\n`,
  },
  {
    name: 'chat completions, whole',
    path: '/v1/chat/completions',
    fields: CHAT,
    stream: false,
    first: '{"choices":[{"message":{"content":"Hello"}}],',
    rest: `"usage":${JSON.stringify(CHAT_USAGE)}}`,
  },
  {
    name: 'responses, streamed',
    path: '/v1/responses',
    fields: { input: 'hi', stream: true },
    stream: true,
    first: event('response.created', { type: 'response.created', response: { id: 'resp_1' } }),
    rest: event('response.completed', { type: 'response.completed', response: { id: 'resp_1', usage: USAGE } }),
  },
  {
    name: 'messages, streamed',
    path: '/v1/messages',
    fields: { ...CHAT, max_tokens: 50, stream: true },
    stream: true,
    first: event('message_start', { type: 'message_start', message: { usage: USAGE } }),
    rest: `${event('message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: USAGE })}${event('message_stop', { type: 'message_stop' })}`,
  },
];

/** A disk whose reserve is of no use either. */
const FAULTS = ['full', 'short'] as const;

describe('a disk that takes no more of the spool', () => {
  const flag = join(tmpdir(), `tollgate-full-disk-${process.pid}`);
  let provider: RawProvider;
  let tollgate: Tollgate;
  let ledger: LedgerView;

  before(async () => {
    provider = await startRawProvider(beginReply);
    tollgate = await startTollgate({
      clickhouse: 'away',
      configurationYaml: testConfiguration({
        upstreamUrl: `http://127.0.0.1:${provider.port}`,
        models: CASES.map((_, index) => ({
          id: `sim/case-${index}`,
          providerModel: `case-${index}`,
          outputCap: 4_096,
          apis: TEXT_APIS,
        })),
      }),
      env: {
        FULL_DISK_FLAG: flag,
        NODE_OPTIONS:
          `${process.env.NODE_OPTIONS ?? ''} --disable-warning=ExperimentalWarning ` +
          `--import=${fileURLToPath(PRELOAD)}`,
      },
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    rmSync(flag, { force: true });
    await ledger?.close();
    await tollgate?.stop();
    await provider?.close();
  });

  for (const how of FAULTS) {
    test(`${how}: every reply is cut, admission stops, and what is held stays held`, async () => {
      const [pid = 0] = tollgate.gatewayPids();
      const pending = await Promise.all(CASES.map((_, index) => begin(index)));
      const before = await settledGauges();
      assert.ok(before.tollgate_lease_held_usd > 0);
      writeFileSync(flag, how);
      for (const { socket, test: one, ended } of pending) {
        const { name, stream, rest } = one;
        // One after the other: of a group that is half written the first records are written.
        socket.write(framed(one, rest, true));
        const answer = await ended;
        assert.equal(answer.complete, false, `${name}: never a clean end`);
        assert.ok(!answer.body.endsWith(stream ? rest.slice(-12) : '}'), `${name}: nor an event that says so`);
      }

      await assertRefused();
      assert.equal((await httpCall(`${tollgate.url}/readyz`)).status, 503, 'a balancer is told');
      const readiness = await httpCall(`${tollgate.adminUrl}/readyz`);
      assert.equal(readiness.status, 503, 'and the operator');
      assert.match(readiness.body.toString(), /^not ready: gateway-1: spool$/m);

      const { tollgate_lease_held_usd: held, tollgate_lease_free_usd: free, ...underWay } = await settledGauges();
      assert.deepEqual(underWay, { tollgate_inflight: 0, tollgate_relays_open: 0, tollgate_upstream_open: 0 });
      assert.deepEqual(
        [held, free],
        [before.tollgate_lease_held_usd, before.tollgate_lease_free_usd],
        'nothing of it became free again',
      );
      assert.deepEqual(tollgate.gatewayPids(), [pid], 'the process lives');
      assert.doesNotMatch(tollgate.output(), /uncaught|unhandled/i);

      rmSync(flag);
      await roll(pid);
      assert.ok((await complete(0)).complete, 'its successor serves');
      await assertAccounted(
        pid,
        pending.map(({ id }) => id),
      );
    });
  }

  test(
    'an admission that cannot be recorded: refused before anything is ' + 'sent, and its hold is free again',
    async () => {
      const [pid = 0] = tollgate.gatewayPids();
      writeFileSync(flag, 'full');
      await assertRefused();
      assert.equal((await settledGauges()).tollgate_lease_held_usd, 0);
      await assertRefused();
      rmSync(flag);
      await roll(pid);
      assert.ok((await complete(0)).complete);
    },
  );

  test(
    'sync: what is under way ends whole and is charged, nothing more is ' + 'admitted, and it passes by itself',
    async () => {
      const pids = tollgate.gatewayPids();
      const pending = await Promise.all(CASES.map((_, index) => begin(index)));
      await failSync();
      await assertRefused();
      for (const { socket, test: one } of pending) socket.write(framed(one, one.rest, true));
      for (const { ended, test: one } of pending) assert.equal((await ended).complete, true, one.name);
      rmSync(flag);
      await becomeReady();
      assert.ok((await complete(0)).complete);
      const ids = pending.map(({ id }) => id);
      await waitFor(
        'the charges',
        () =>
          ledger.query(
            `SELECT count(*)::int AS count FROM generations WHERE id = ANY($1) AND billing_status = 'final'
            AND charge > 0`,
            [ids],
          ),
        (rows) => rows[0]?.count === ids.length,
      );
      assert.deepEqual(tollgate.gatewayPids(), pids);
    },
  );

  test(
    'full for a while: what could not be recorded is cancelled when there is room again, and admission ' +
      'goes on by itself',
    async () => {
      const pids = tollgate.gatewayPids();
      const { id, socket, test: one, ended } = await begin(0);
      writeFileSync(flag, 'full');
      socket.write(framed(one, one.rest, true));
      assert.equal((await ended).complete, false);
      await assertRefused();
      rmSync(flag);
      await becomeReady();
      assert.ok((await complete(0)).complete);
      const rows = await waitFor(
        'the end of what was cut',
        () =>
          ledger.query(
            `SELECT billing_status, error_code, charge::text AS charge FROM generations
            WHERE id = $1 AND outcome IS NOT NULL`,
            [id],
          ),
        (found) => found.length === 1,
      );
      assert.deepEqual(rows, [{ billing_status: 'cancelled', error_code: 'record_lost', charge: '0' }]);
      assert.deepEqual(tollgate.gatewayPids(), pids);
    },
  );

  async function assertRefused(): Promise<void> {
    const callsBefore = provider.requests.length;
    const { status, headers, body } = await ask(0);
    assert.equal(status, 503);
    assert.ok(Number(headers['retry-after']) >= 1);
    assert.equal((JSON.parse(body.toString('utf8')) as { error: string }).error, 'billing_unavailable');
    assert.equal(provider.requests.length, callsBefore, 'nothing is sent that could not be recorded');
  }

  /** Waits until nothing changes any more: leases are taken ahead in the background. */
  async function settledGauges() {
    let last = '';
    const read = async () => {
      const text = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString('utf8');
      const free = Number(/^tollgate_lease_free_usd(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1]);
      return { ...(await readGauges(tollgate)), tollgate_lease_free_usd: free };
    };
    return waitFor('the gauges to settle', read, (gauges) => {
      const isSame = JSON.stringify(gauges) === last;
      last = JSON.stringify(gauges);
      return isSame;
    });
  }

  interface Pending {
    readonly test: Case;
    readonly id: string;
    readonly socket: Socket;
    readonly ended: Promise<{ complete: boolean; body: string }>;
  }

  function bodyOf(index: number): string {
    return JSON.stringify({ model: `sim/case-${index}`, ...(CASES[index] as Case).fields });
  }

  const HEADERS = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };

  function ask(index: number) {
    return httpCall(`${tollgate.url}${(CASES[index] as Case).path}`, { headers: HEADERS, body: bodyOf(index) });
  }

  /** Resolves when the client has the reply's first bytes. */
  async function begin(index: number): Promise<Pending> {
    const one = CASES[index] as Case;
    const { id, ended } = await new Promise<Pick<Pending, 'id' | 'ended'>>((resolve, reject) => {
      const request = httpRequest(
        `${tollgate.url}${one.path}`,
        { method: 'POST', headers: HEADERS, agent: false },
        (response) => {
          let body = '';
          response.setEncoding('utf8');
          response.on('data', (text: string) => {
            body += text;
          });
          const done = Promise.withResolvers<{ complete: boolean; body: string }>();
          response.on('close', () => done.resolve({ complete: response.complete, body }));
          response.on('error', () => undefined);
          response.once('data', () =>
            resolve({ id: String(response.headers['x-service-execution-id']), ended: done.promise }),
          );
        },
      );
      request.on('error', reject);
      request.end(bodyOf(index));
    });
    return { test: one, id, ended, socket: provider.sockets[atProvider.get(index) ?? -1] as Socket };
  }

  async function complete(index: number): Promise<{ complete: boolean; body: string }> {
    const { socket, test: one, ended } = await begin(index);
    socket.write(framed(one, one.rest, true));
    return ended;
  }

  /** A background sync comes only after something was written. */
  async function failSync(): Promise<void> {
    writeFileSync(flag, 'sync');
    await complete(0);
    await waitFor(
      'the failed sync to be noticed',
      async () => (await httpCall(`${tollgate.url}/readyz`)).status,
      (status) => status === 503,
    );
  }

  async function roll(pid: number): Promise<void> {
    process.kill(tollgate.pid, 'SIGHUP');
    await waitFor(
      'another gateway',
      () => tollgate.gatewayPids(),
      (pids) => pids.length === 1 && pids[0] !== pid,
    );
    await becomeReady();
  }

  async function becomeReady(): Promise<void> {
    await waitFor(
      'the installation to be ready again',
      async () => (await httpCall(`${tollgate.url}/readyz`)).status,
      (status) => status === 200,
    );
  }

  /**
   * The closed epoch's executions have an end, none of them twice, and what it held is the wallet's again but for what
   * they cost.
   */
  async function assertAccounted(pid: number, ids: readonly string[]): Promise<void> {
    await waitFor(
      'the executions to be resolved',
      () =>
        ledger.query('SELECT count(*)::int AS count FROM generations WHERE id = ANY($1) AND outcome IS NOT NULL', [
          ids,
        ]),
      (rows) => rows[0]?.count === ids.length,
    );
    await waitFor(
      'the lease to be returned',
      () =>
        ledger.query(
          `SELECT coalesce(sum(outstanding), 0)::text AS left FROM leases JOIN process_epochs USING (epoch)
            WHERE pid = $1`,
          [pid],
        ),
      (rows) => rows[0]?.left === '0',
    );
    // In one statement: the successor's own request is posted meanwhile.
    const [row] = await ledger.query(
      `SELECT coalesce((SELECT sum(charge) FROM generations), 0)::text AS charged, balance::text AS balance
       FROM wallets JOIN organizations ON organizations.id = wallets.organization_id
         WHERE organizations.slug = 'acme' AND wallets.user_id IS NULL`,
    );
    assert.equal(OPENING_CREDIT_PICO - BigInt(String(row?.balance)), BigInt(String(row?.charged)));
  }

  /** Connection of the last request for each case. */
  const atProvider = new Map<number, number>();

  function beginReply(socket: Socket, request: string): void {
    const index = Number(/"model":"case-(\d+)"/.exec(request)?.[1]);
    const one = CASES[index] as Case;
    atProvider.set(index, provider.sockets.indexOf(socket));
    const length = `content-length: ${one.first.length + one.rest.length}`;
    const head = one.stream
      ? ['content-type: text/event-stream', 'transfer-encoding: chunked']
      : ['content-type: application/json', length];
    socket.write(`HTTP/1.1 200 OK\r\n${head.join('\r\n')}\r\n\r\n${framed(one, one.first, false)}`);
  }
});

function framed({ stream }: Case, text: string, isLast: boolean): string {
  if (!stream) return text;
  return `${text.length.toString(16)}\r\n${text}\r\n${isLast ? '0\r\n\r\n' : ''}`;
}
