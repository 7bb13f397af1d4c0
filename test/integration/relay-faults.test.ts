// Providers that misbehave: what the client gets, how often the provider was called, and what the execution cost.
// A stream that did not finish never looks finished, and no report of a provider ever becomes a credit.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerRow, type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, OPENING_CREDIT_PICO, PICO_PER_TOKEN, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

interface Case {
  readonly name: string;
  readonly directives: string;
  readonly stream?: boolean;
  readonly model?: string;
  readonly status: number;
  /** Whether the client may take what it got for the whole response. */
  readonly complete: boolean;
  readonly outcome: string;
  readonly billingStatus: string;
  /** Output tokens of the record; null where nothing was used. */
  readonly output: number | null;
  readonly usageSource: 'reported' | 'counted' | null;
}

const NOTHING = { output: null, usageSource: null } as const;

const CASES: readonly Case[] = [
  {
    name: 'a 400',
    directives: 'status=400',
    status: 400,
    complete: true,
    outcome: 'provider_refused',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'a 429',
    directives: 'status=429 retry_after=2',
    model: 'sim/limited',
    status: 429,
    complete: true,
    outcome: 'provider_refused',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'a 500',
    directives: 'status=500',
    status: 500,
    complete: true,
    outcome: 'provider_failed',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'a 503 on a stream',
    directives: 'status=503',
    stream: true,
    status: 503,
    complete: true,
    outcome: 'provider_failed',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'a reset before the reply',
    directives: 'reset_before_reply',
    status: 502,
    complete: true,
    outcome: 'no_reply',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'an end before the reply',
    directives: 'close_before_reply',
    status: 502,
    complete: true,
    outcome: 'no_reply',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'headers of 100 KB',
    directives: 'header_bytes=100000',
    status: 502,
    complete: true,
    outcome: 'no_reply',
    billingStatus: 'not_billed',
    ...NOTHING,
  },
  {
    name: 'a stream that is cut',
    directives: 'tokens=40 cut_after=7',
    stream: true,
    status: 200,
    complete: false,
    outcome: 'cut_mid_stream',
    billingStatus: 'final',
    output: 7,
    usageSource: 'counted',
  },
  {
    name: 'a stream without [DONE]',
    directives: 'tokens=12 no_done',
    stream: true,
    status: 200,
    complete: true,
    outcome: 'completed_without_usage',
    billingStatus: 'final',
    output: 12,
    usageSource: 'counted',
  },
  {
    name: 'a body without usage',
    directives: 'tokens=15 no_usage',
    status: 200,
    complete: true,
    outcome: 'completed_without_usage',
    billingStatus: 'final',
    output: 15,
    usageSource: 'counted',
  },
  {
    name: 'negative usage',
    directives: 'tokens=9 usage=negative',
    status: 200,
    complete: true,
    outcome: 'completed',
    billingStatus: 'final',
    output: 9,
    usageSource: 'counted',
  },
  {
    name: 'usage in strings',
    directives: 'tokens=9 usage=string',
    status: 200,
    complete: true,
    outcome: 'completed',
    billingStatus: 'final',
    output: 9,
    usageSource: 'counted',
  },
  {
    name: 'usage in fractions',
    directives: 'tokens=9 usage=float',
    status: 200,
    complete: true,
    outcome: 'completed',
    billingStatus: 'final',
    output: 9,
    usageSource: 'counted',
  },
  {
    name: 'usage without counts',
    directives: 'tokens=9 usage=null_counts',
    status: 200,
    complete: true,
    outcome: 'completed_without_usage',
    billingStatus: 'final',
    output: 9,
    usageSource: 'counted',
  },
  {
    name: 'characters split on the wire',
    directives: 'tokens=60 split_utf8',
    stream: true,
    status: 200,
    complete: true,
    outcome: 'completed_without_usage',
    billingStatus: 'final',
    output: 60,
    usageSource: 'counted',
  },
  {
    name: 'a retry-after on a 200',
    directives: 'tokens=3 retry_after=9',
    status: 200,
    complete: true,
    outcome: 'completed',
    billingStatus: 'final',
    output: 3,
    usageSource: 'reported',
  },
];

describe('a provider that misbehaves', () => {
  let provider: SimulatedProvider;
  let tollgate: Front;
  let ledger: LedgerView;

  before(async () => {
    provider = await startSimulatedProvider();
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: provider.url }),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await provider?.stop();
  });

  const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
  const bodyOf = (content: string, fields: Record<string, unknown> = {}): string =>
    JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content }], max_tokens: 1000, ...fields });
  const ask = (content: string, fields: Record<string, unknown> = {}): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body: bodyOf(content, fields) });

  async function readExecution(id: string): Promise<LedgerRow> {
    const [row] = await waitFor(
      `execution ${id} to be posted`,
      () =>
        ledger.query(
          `SELECT outcome, billing_status, output_tokens::text AS output, usage_source, charge::text AS charge,
            suspense::text AS suspense,
                  authorized_amount::text AS held FROM generations WHERE id = $1 AND outcome IS NOT NULL`,
          [id],
        ),
      (rows) => rows.length === 1,
    );
    return row ?? {};
  }

  for (const item of CASES) {
    test(item.name, async () => {
      const callsBefore = provider.starts().length;
      const answer = await ask(`${item.name} [[sim: ${item.directives}]]`, {
        ...(item.stream === true ? { stream: true } : {}),
        ...(item.model === undefined ? {} : { model: item.model }),
      });
      assert.equal(answer.status, item.status, answer.body.toString('utf8').slice(0, 500));
      assert.equal(answer.complete, item.complete);
      // A kept connection that dies before a reply byte may have been dead already: then the request goes once more.
      const callsMax = item.outcome === 'no_reply' ? 2 : 1;
      assert.ok(
        provider.starts().length - callsBefore <= callsMax,
        `${provider.starts().length - callsBefore} calls at the provider`,
      );
      const row = await readExecution(String(answer.headers['x-service-execution-id']));
      assert.deepEqual(
        {
          outcome: row.outcome,
          billingStatus: row.billing_status,
          output: row.output ?? null,
          usageSource: row.usage_source,
        },
        {
          outcome: item.outcome,
          billingStatus: item.billingStatus,
          output: item.output === null ? null : String(item.output),
          usageSource: item.usageSource,
        },
      );
      const charge = BigInt(row.charge ?? 0);
      if (item.output === null) assert.equal(charge, 0n);
      else
        assert.ok(
          charge >= BigInt(item.output) * PICO_PER_TOKEN.output && charge <= BigInt(String(row.held)),
          `charge ${charge}`,
        );
    });
  }

  test('a body that is cut is never whole', async () => {
    const answer = await ask('Cut body. [[sim: tokens=50 cut_after=200]]');
    assert.ok(!answer.complete);
    assert.equal((await readExecution(String(answer.headers['x-service-execution-id']))).outcome, 'cut_mid_stream');
  });

  test('usage far beyond the hold goes to suspense, not to the wallet', async () => {
    const answer = await ask('Huge. [[sim: tokens=4 usage=huge]]');
    assert.ok(answer.complete);
    const row = await readExecution(String(answer.headers['x-service-execution-id']));
    assert.ok(BigInt(String(row.charge)) <= BigInt(String(row.held)), JSON.stringify(row));
    assert.ok(BigInt(String(row.suspense)) > 0n, JSON.stringify(row));
  });

  test('a line of a megabyte and bytes that are not UTF-8 pass as they are', async () => {
    const large = await ask('Large. [[sim: tokens=2 bytes=1000000]]', { stream: true });
    assert.ok(large.complete && large.body.length > 1_000_000);
    assert.ok(large.body.toString('latin1').includes('x'.repeat(1_000_000)));
    const broken = await ask('Broken. [[sim: tokens=2 invalid_utf8]]', { stream: true });
    assert.ok(broken.complete && broken.body.includes(Buffer.from([0xff, 0xc3, 0x28])));
  });

  test('a client that leaves before the first byte pays nothing, and the provider is left too', async () => {
    await leaveAfter('Never mind. [[sim: first_byte_ms=600000]]', 0);
    const end = await provider.lastEnd();
    assert.equal(end.completed, false);
    const [row, ...more] = await waitFor(
      'the execution to be posted',
      () =>
        ledger.query(
          `SELECT outcome, billing_status, charge::text AS charge FROM generations
            WHERE outcome = 'aborted_before_first_byte'`,
        ),
      (rows) => rows.length > 0,
    );
    assert.equal(more.length, 0);
    assert.deepEqual(row, { outcome: 'aborted_before_first_byte', billing_status: 'cancelled', charge: '0' });
  });

  test('a client that leaves in mid-stream pays for what it got', async () => {
    const id = await leaveAfter('Enough. [[sim: tokens=900 delay_ms=50]]', 2000);
    const end = await provider.lastEnd();
    assert.equal(end.completed, false);
    const row = await readExecution(id);
    assert.deepEqual([row.outcome, row.billing_status, row.usage_source], ['aborted_mid_stream', 'final', 'counted']);
    const output = Number(row.output);
    assert.ok(output > 0 && output <= end.completionTokens, `${output} of ${end.completionTokens} tokens`);
  });

  /**
   * Closes the connection after so many bytes of the reply, 0: before any; resolves with the execution id, if there was
   * one.
   */
  function leaveAfter(content: string, bytes: number): Promise<string> {
    return new Promise((resolve) => {
      const body = bodyOf(content, { stream: true });
      const request = httpRequest(`${tollgate.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        agent: false,
      });
      request.on('error', () => undefined);
      request.on('response', (response) => {
        let received = 0;
        response.on('error', () => undefined);
        response.on('data', (chunk: Buffer) => {
          received += chunk.length;
          if (received < bytes) return;
          request.destroy();
          resolve(String(response.headers['x-service-execution-id']));
        });
      });
      request.end(body);
      if (bytes > 0) return;
      const calls = provider.starts().length;
      void waitFor(
        'the provider to be called',
        () => provider.starts().length,
        (count) => count > calls,
      ).then(() => {
        request.destroy();
        resolve('');
      });
    });
  }

  test('the wallet lost what the executions cost, and holds no longer than they ran', async () => {
    await waitFor(
      'the wallet to agree with its generations',
      async () => {
        const [row] = await ledger.query('SELECT coalesce(sum(charge), 0)::text AS charged FROM generations');
        return OPENING_CREDIT_PICO - (await ledger.wallet('acme')).balance - BigInt(String(row?.charged));
      },
      (difference) => difference === 0n,
    );
  });
});
