// Spec 4.4: what a recorded request says of its error, in the list, in its CSV and looked up by itself. A reply that
// failed or was cut after its status has one, a good reply has none, and neither changes what counts as an error.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { requestAnswer } from '../../src/control-plane/reports/report-answers.ts';
import { factOf, insertFacts } from '../../src/storage/clickhouse/facts.ts';
import { OWNER } from '../support/billing-front.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { type Json, type ReportsFront, startReportsFront } from '../support/reports-front.ts';

const NOW = Date.now();
const PLACE = '/v1/usage/active-org';
const organizationId = randomUUID();

/** How it ended, the code in its record, and the error that is shown; whether reports count it as one. */
const ROWS = [
  ['completed', 200, null, null, false],
  ['completed', 200, 'usage_unpriced: service_tier priority', null, false],
  ['completed', 200, 'usage_distrusted: input is not a non-negative whole number', null, false],
  ['completed_without_usage', 200, 'usage_unreadable: the reply is compressed (gzip)', null, false],
  ['cut_mid_stream', 200, null, 'cut_mid_stream', true],
  ['cut_mid_stream', 200, 'usage_unpriced: service_tier priority', 'cut_mid_stream', true],
  ['provider_failed', 200, null, 'provider_failed', true],
  ['provider_failed', 503, 'provider_503', 'provider_503', true],
  ['process_killed', null, null, 'process_killed', true],
  ['process_killed', null, 'internal_error', 'internal_error', true],
  ['refused', 429, 'usage_limit_exceeded', 'usage_limit_exceeded', true],
  ['output_blocked', 200, 'guardrail_blocked', 'guardrail_blocked', true],
  // A client that leaves is no error.
  ['aborted_before_first_byte', null, 'client_left', 'client_left', false],
  ['aborted_mid_stream', 200, null, null, false],
  ['usage_then_cut', 200, null, null, false],
] as const;

const RECORDS = ROWS.map(([outcome, status, errorCode], index) =>
  terminalRecord(
    executionStart({ organizationId, model: 'sim/small', provider: 'sim', admittedAtMs: NOW - 1_000 * (index + 1) }),
    { outcome, status, errorCode },
  ),
);

describe('the error of a recorded request', () => {
  let clickhouse: TestClickHouse;
  let front: ReportsFront;

  before(async () => {
    clickhouse = await openTestClickHouse();
    await insertFacts(clickhouse.client, RECORDS.map(factOf), 'all');
    front = await startReportsFront({
      principals: { owner: { ...OWNER, organizationId } },
      clickhouse: () => clickhouse.client,
      endedExecution: async ({ id }) => RECORDS.find((record) => record.id === id) ?? null,
    });
  });
  after(async () => {
    await front?.stop();
    await clickhouse?.close();
  });

  const list = async (query = '') =>
    (await front.json('owner', `${PLACE}/requests?limit=100${query}`))['data'] as unknown as readonly Json[];

  test('in the list', async () => {
    const shown = (await list()).map(({ status, error }) => [status, error]);
    assert.deepEqual(
      shown,
      ROWS.map(([, status, , error]) => [status, error]),
    );
  });

  test('in the CSV', async () => {
    const csv = (await front.get('owner', `${PLACE}/requests?format=csv`)).body.toString();
    const [head = '', ...lines] = csv.trimEnd().split('\r\n');
    const column = head.split(',').indexOf('error');
    assert.deepEqual(
      lines.map((line) => line.split(',')[column]),
      ROWS.map(([, , , error]) => error ?? ''),
    );
  });

  test('looked up, where what was wrong with the usage alone has its own place', async () => {
    for (const [index, { id }] of RECORDS.entries()) {
      const [, , code, error] = ROWS[index] ?? [];
      const answer = await front.json('owner', `${PLACE}/requests/${id}`);
      assert.deepEqual(requestAnswer.parse(answer), answer);
      const data = answer['data'] as Json;
      const problem = code?.includes(': ') === true ? code : null;
      assert.deepEqual([data['error'], (data['details'] as Json)['usage_problem']], [error, problem]);
    }
  });

  test('what counts as an error is what it was', async () => {
    const errors = ROWS.flatMap((row, index) => (row[4] ? [RECORDS[index]?.id] : []));
    assert.deepEqual(
      (await list('&status=error')).map(({ id }) => id),
      errors,
    );
    const { data } = await front.json('owner', `${PLACE}/daily`);
    const days = data as unknown as readonly Json[];
    assert.equal(
      days.reduce((sum, day) => sum + Number(day['errors']), 0),
      // Those that were refused are listed, and no usage.
      errors.length - 1,
    );
  });
});
