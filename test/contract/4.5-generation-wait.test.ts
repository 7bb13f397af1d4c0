// Spec 4.5: GET /v1/generation waits as long as it is asked to for the charge to be final, asks rarely meanwhile, and
// no longer than its client.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { GenerationLookup } from '../../src/control-plane/executions/get-generation.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import type { Generation } from '../../src/records/generation.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { type BillingFront, NOBODY, startBillingFront } from '../support/billing-front.ts';
import { pendingGeneration } from '../support/pending-generation.ts';
import { waitFor } from '../support/waiting.ts';

const OLD_MS = 3_600_000;
const nextId = createExecutionIdSource(systemClock);
const longAgo: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() - OLD_MS };
const nextOldId = createExecutionIdSource(longAgo);

describe('GET /v1/generation?wait=', () => {
  let front: BillingFront;
  let draining = false;
  const stored = new Map<string, Generation>();
  let questions = 0;
  let waits = 0;
  let postings: Promise<boolean> = Promise.resolve(true);
  const lookup: GenerationLookup = {
    findGeneration: async ({ id }) => {
      questions += 1;
      return stored.get(id) ?? null;
    },
    postingPassed: () => {
      waits += 1;
      return postings;
    },
    clock: systemClock,
    isDraining: () => draining,
  };

  before(async () => {
    front = await startBillingFront(
      {} as Postgres,
      { key: { ...NOBODY, organizationId: '00000000-0000-4000-8000-000000000001' } },
      lookup,
    );
  });
  after(() => front?.stop());
  beforeEach(() => {
    questions = 0;
    waits = 0;
    draining = false;
    postings = Promise.resolve(true);
  });

  const ask = (id: string, wait?: string) =>
    front.call('key', 'GET', `/v1/generation?id=${id}${wait === undefined ? '' : `&wait=${wait}`}`);

  test('answers as soon as the charge is final', async () => {
    const id = nextOldId();
    stored.set(id, pendingGeneration(id));
    const answer = ask(id, '30');
    await waitFor(
      'a few questions',
      () => questions,
      (count) => count >= 5,
    );
    stored.set(id, { ...pendingGeneration(id), billingStatus: 'final', charge: '7' });
    const { status, data } = await answer;
    assert.deepEqual([status, data['billing_status'], data['total_cost']], [200, 'final', 7e-12]);
  });

  test('the wait over, it answers with what is known; without one an old execution is once all is posted', async () => {
    const id = nextOldId();
    stored.set(id, pendingGeneration(id));
    assert.equal((await ask(id)).data['billing_status'], 'pending');
    assert.deepEqual([questions, waits], [2, 1]);
    const { status, data } = await ask(id, '1');
    assert.deepEqual([status, data['billing_status']], [200, 'pending']);
    // Ever less often.
    assert.ok(questions < 15, `${questions} questions`);
  });

  test('what is not there when everything is posted has never been', async () => {
    assert.equal((await ask(nextId(), '30')).status, 404);
    assert.equal((await ask(nextOldId())).status, 404);
    assert.equal(questions, 4);
  });

  test('what is not posted yet is waited for', async () => {
    const { promise, resolve: post } = Promise.withResolvers<boolean>();
    postings = promise;
    const id = nextId();
    const answer = ask(id);
    await waitFor(
      'the first question',
      () => questions,
      (count) => count === 1,
    );
    stored.set(id, { ...pendingGeneration(id), billingStatus: 'cancelled', charge: '0' });
    post(true);
    assert.equal((await answer).data['billing_status'], 'cancelled');
  });

  test('the end of what is pending is waited for as well, however long it ran', async () => {
    const { promise, resolve: post } = Promise.withResolvers<boolean>();
    postings = promise;
    const id = nextOldId();
    stored.set(id, pendingGeneration(id));
    const answer = ask(id);
    await waitFor(
      'the wait for postings',
      () => waits,
      (count) => count === 1,
    );
    stored.set(id, { ...pendingGeneration(id), billingStatus: 'final', charge: '7' });
    post(true);
    assert.equal((await answer).data['billing_status'], 'final');
    postings = Promise.resolve(false);
    const late = nextOldId();
    stored.set(late, pendingGeneration(late));
    assert.equal((await ask(late)).data['billing_status'], 'pending', 'what is known, where postings take too long');
  });

  test('where postings take too long it is not said that there is nothing: 503, to be asked again', async () => {
    postings = Promise.resolve(false);
    for (const id of [nextId(), nextOldId()]) {
      const { status, text } = await ask(id, '30');
      assert.equal(status, 503, text);
    }
  });

  test('a process that ends lets nobody wait', async () => {
    const id = nextOldId();
    stored.set(id, pendingGeneration(id));
    draining = true;
    assert.equal((await ask(id, '30')).data['billing_status'], 'pending');
    assert.equal(questions, 1);
  });

  test('a client that leaves is not asked for any longer', async () => {
    const id = nextOldId();
    stored.set(id, pendingGeneration(id));
    const { promise: left, resolve } = Promise.withResolvers<void>();
    const url = new URL(front.url);
    const call = request({
      host: url.hostname,
      port: url.port,
      path: `/v1/generation?id=${id}&wait=30`,
      headers: { authorization: 'Bearer key' },
      agent: false,
    });
    call.on('error', () => resolve());
    call.end();
    await waitFor(
      'the first questions',
      () => questions,
      (count) => count >= 2,
    );
    call.destroy();
    await left;
    let before = -1;
    await waitFor(
      'the questions to end',
      async () => {
        before = questions;
        await new Promise((next) => setTimeout(next, 700));
        return questions;
      },
      (count) => count === before,
    );
  });

  test('only whole seconds from 0 to 30', async () => {
    for (const wait of ['31', '-1', '1.5', 'x', '', '1e1', '99999999999']) {
      const { status, body } = await ask(nextOldId(), wait);
      assert.equal(status, 400, wait);
      assert.match(String(body['error']), /wait/);
    }
    assert.equal(questions, 0);
  });
});
