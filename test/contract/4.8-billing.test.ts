// Spec 4.8: credit and deposits of the caller's payer, on a real Postgres: money as decimal strings, each deposit once,
// wallets apart, freezing.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { isRefused } from '../../src/domain/refusals/refused.ts';
import { listAudit } from '../../src/storage/postgres/identity/audit.ts';
import { deposit } from '../../src/storage/postgres/ledger/credits.ts';
import { revokeFrozen } from '../../src/storage/postgres/ledger/payer-wallets.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { createListener } from '../../src/storage/postgres/listen.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import {
  type BillingAnswer,
  type BillingFront,
  NOBODY,
  OWNER,
  PLATFORM,
  startBillingFront,
} from '../support/billing-front.ts';
import { admittedRecord, type FundedOrganization, fundOrganization, terminalRecord } from '../support/executions.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waiting.ts';

const USD = 10n ** 12n;

describe('billing', () => {
  let database: TestDatabase;
  let url: string;
  let postgres: Postgres;
  let acme: FundedOrganization;
  let other: FundedOrganization;
  let memberId: string;
  let front: BillingFront;

  before(async () => {
    database = await openTestDatabase();
    ({ url, postgres } = database);
    acme = await fundOrganization(postgres, 25n * USD + 1n);
    other = await fundOrganization(postgres, 5n * USD);
    const { rows } = await postgres.query<{ id: string }>(
      `INSERT INTO users (email) VALUES ('member@acme.test') RETURNING id`,
    );
    memberId = rows[0]?.id ?? '';
    await postgres.query(`INSERT INTO memberships (organization_id, user_id, role) VALUES ($1, $2, 'member')`, [
      acme.organizationId,
      memberId,
    ]);
    const { rows: wallets } = await postgres.query<{ id: string }>(
      'INSERT INTO wallets (organization_id, user_id) VALUES ($1, $2) RETURNING id',
      [acme.organizationId, memberId],
    );
    const ofAcme = { ...NOBODY, ...acme, billed: true };
    front = await startBillingFront(postgres, {
      acme: ofAcme,
      member: { ...ofAcme, userId: memberId, walletId: wallets[0]?.id ?? '' },
      other: { ...NOBODY, ...other, billed: true },
      free: { ...NOBODY, organizationId: other.organizationId },
      owner: { ...OWNER, ...acme, billed: true },
      platform: PLATFORM,
      working: { ...PLATFORM, ...acme, permissions: [...OWNER.permissions, 'platform.admin'] },
    });
  });
  after(async () => {
    await front?.stop();
    await database?.close();
  });

  const order = (fields: object = {}) => ({
    amount: '10.50',
    reference: 'invoice 1',
    organization_id: acme.organizationId,
    ...fields,
  });

  test('GET /v1/billing/credits: what the payer has, exact: held by open requests, lent to gateways, the rest', async () => {
    assert.deepEqual((await front.call('acme', 'GET', '/v1/billing/credits')).body, {
      data: { currency: 'USD', balance: '25.000000000001', held: '0', lent: '0', available: '25.000000000001' },
    });
    const epoch = await registerEpoch(postgres, { machine: 'test', pid: 1, kind: 'gateway' });
    await takeLease(postgres, { epoch, walletId: acme.walletId, amount: 3n * USD, minimum: 0n });
    assert.deepEqual((await front.call('acme', 'GET', '/v1/billing/credits')).data, {
      currency: 'USD',
      balance: '25.000000000001',
      held: '0',
      lent: '3',
      available: '22.000000000001',
    });
    const open = (wallet: FundedOrganization, amount: bigint) =>
      admittedRecord(wallet, { authorizedAmount: String(amount) });
    const requests = [open(acme, USD), open(acme, USD / 2n), open(other, USD)];
    const [first] = requests;
    assert.ok(first !== undefined);
    await postExecutions(postgres, { epoch, segment: 1, fromOffset: 0, toOffset: 10, records: requests });
    const held = (await front.call('acme', 'GET', '/v1/billing/credits')).data;
    assert.deepEqual([held['held'], held['lent'], held['available']], ['1.5', '1.5', '22.000000000001']);
    const ended = terminalRecord(first, { charge: '0', ratedCost: '0' });
    await postExecutions(postgres, { epoch, segment: 1, fromOffset: 10, toOffset: 20, records: [ended] });
    assert.deepEqual((await front.call('acme', 'GET', '/v1/billing/credits')).data, {
      currency: 'USD',
      balance: '25.000000000001',
      held: '0.5',
      lent: '2.5',
      available: '22.000000000001',
    });
    assert.equal((await front.call('other', 'GET', '/v1/billing/credits')).data['balance'], '5');
    assert.equal((await front.call('member', 'GET', '/v1/billing/credits')).data['balance'], '0');
  });

  test('an organization that is not billed has no credit to show: null, not zero', async () => {
    assert.deepEqual((await front.call('free', 'GET', '/v1/billing/credits')).data, {
      currency: 'USD',
      balance: null,
      held: null,
      lent: null,
      available: null,
    });
    assert.deepEqual((await front.call('free', 'GET', '/v1/billing/deposits')).body, { data: [], next_cursor: null });
  });

  test('POST /v1/billing/deposits: once for each reference; with another amount 409', async () => {
    const first = await front.call('platform', 'POST', '/v1/billing/deposits', order());
    assert.equal(first.status, 201, first.text);
    assert.deepEqual(
      [first.data['amount'], first.data['currency'], first.data['reference']],
      ['10.5', 'USD', 'invoice 1'],
    );
    const balance = (await front.call('acme', 'GET', '/v1/billing/credits')).data['balance'];
    assert.equal(balance, '35.500000000001');
    const repeated = await Promise.all(
      Array.from({ length: 8 }, () => front.call('platform', 'POST', '/v1/billing/deposits', order())),
    );
    for (const one of repeated) assert.deepEqual(one.data, first.data);
    const conflicting = await front.call('platform', 'POST', '/v1/billing/deposits', order({ amount: '10.51' }));
    assert.equal(conflicting.status, 409);
    assert.match(String(conflicting.body['error']), /reference/);
    assert.equal((await front.call('acme', 'GET', '/v1/billing/credits')).data['balance'], balance);
    const entries = await listAudit(postgres, { organizationId: acme.organizationId });
    assert.ok(!isRefused(entries));
    assert.deepEqual(
      entries.items
        .filter(({ action }) => action === 'wallet.deposit')
        .map(({ target, after: made }) => [target, made]),
      [
        [
          { kind: 'wallet', id: acme.walletId },
          { depositId: first.data['id'], amount: '10.5', reference: 'invoice 1' },
        ],
      ],
    );
  });

  test('the same reference in another wallet is another deposit, also in a member’s own, which is made when it is needed', async () => {
    const theirs = await front.call(
      'platform',
      'POST',
      '/v1/billing/deposits',
      order({ organization_id: other.organizationId }),
    );
    assert.equal(theirs.status, 201);
    assert.equal((await front.call('other', 'GET', '/v1/billing/credits')).data['balance'], '15.5');
    const own = await front.call('platform', 'POST', '/v1/billing/deposits', order({ user_id: memberId }));
    assert.equal(own.status, 201);
    assert.equal((await front.call('member', 'GET', '/v1/billing/credits')).data['balance'], '10.5');
    // Not a member there.
    const foreign = await front.call(
      'platform',
      'POST',
      '/v1/billing/deposits',
      order({ user_id: memberId, organization_id: other.organizationId }),
    );
    assert.equal(foreign.status, 404);
  });

  test('the active organization is meant where none is named; without either the scope is not resolved', async () => {
    const named = await front.call('working', 'POST', '/v1/billing/deposits', { amount: '1', reference: 'no name' });
    assert.equal(named.status, 201);
    const unresolved = await front.call('platform', 'POST', '/v1/billing/deposits', {
      amount: '1',
      reference: 'no name',
    });
    assert.deepEqual([unresolved.status, unresolved.body['error']], [400, 'authorization scope required']);
  });

  test('only a platform administrator deposits', async () => {
    for (const as of ['acme', 'owner', 'member']) {
      const refused = await front.call(as, 'POST', '/v1/billing/deposits', order({ reference: 'mine' }));
      assert.deepEqual([refused.status, refused.body['error']], [403, 'permission denied']);
    }
  });

  test('amounts that are no exact dollars above 0 are refused by field', async () => {
    for (const amount of [
      '0',
      '0.00',
      '-1',
      '1e3',
      '',
      ' 1',
      '1,5',
      '0.0000000000001',
      'NaN',
      10,
      null,
      '9'.repeat(40),
    ]) {
      const refused = await front.call('platform', 'POST', '/v1/billing/deposits', order({ amount, reference: 'odd' }));
      assert.equal(refused.status, 400, String(amount));
      assert.match(String(refused.body['error']), /amount/);
    }
    for (const reference of ['', 'a\nb', 'x'.repeat(201), 'nul\u0000']) {
      assert.equal((await front.call('platform', 'POST', '/v1/billing/deposits', order({ reference }))).status, 400);
    }
  });

  test('GET /v1/billing/deposits: the payer’s own, newest first, a page at a time', async () => {
    const payer = await fundOrganization(postgres, 0n);
    const paying = await startBillingFront(postgres, { payer: { ...NOBODY, ...payer, billed: true } });
    try {
      for (let index = 1; index <= 7; index++) {
        await deposit(postgres, {
          walletId: payer.walletId,
          amount: picoUsd(BigInt(index) * USD),
          reference: `invoice:${index}`,
        });
        await deposit(postgres, { walletId: other.walletId, amount: picoUsd(USD), reference: `noise ${index}` });
      }
      const seen: unknown[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: BillingAnswer = await paying.call(
          'payer',
          'GET',
          `/v1/billing/deposits?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`,
        );
        assert.equal(page.status, 200, page.text);
        seen.push(
          ...(page.data as unknown as { amount: string; reference: string }[]).map(({ amount, reference }) => [
            amount,
            reference,
          ]),
        );
        cursor = page.body['next_cursor'] as string | null;
        pages += 1;
        // What comes meanwhile does not shift the pages.
        if (pages === 1) await deposit(postgres, { walletId: payer.walletId, amount: picoUsd(USD), reference: 'late' });
      } while (cursor !== null);
      assert.deepEqual(
        seen,
        [7, 6, 5, 4, 3, 2, 1].map((index) => [String(index), `invoice:${index}`]),
      );
      assert.equal(pages, 3);
      for (const strange of ['x', 'MQ', 'ZDA'])
        assert.equal((await paying.call('payer', 'GET', `/v1/billing/deposits?cursor=${strange}`)).status, 400);
    } finally {
      await paying.stop();
    }
  });

  test('freezing: seen in the list, told to gateways, audited; lends nothing until it ends', async () => {
    const revoked: string[] = [];
    const channels = { tollgate_lease_revocation: (id: string) => void revoked.push(id) };
    const listener = createListener({ url, log: silentLog, channels, onReconnect: () => undefined });
    await listener.listening;
    const wallets = `/v1/admin/organizations/${acme.organizationId}/wallets`;
    const frozen = await front.call('platform', 'PATCH', `${wallets}/${acme.walletId}`, { frozen: true });
    assert.deepEqual([frozen.status, frozen.data['frozen']], [200, true], frozen.text);
    await waitFor(
      'the revocation',
      () => revoked,
      (ids) => ids.includes(acme.walletId),
    );
    revoked.length = 0;
    assert.equal(await revokeFrozen(postgres), 1, 'and again, as long as gateways have some of it');
    await waitFor(
      'another revocation',
      () => revoked,
      (ids) => ids.includes(acme.walletId),
    );
    await listener.close();
    const listed = (await front.call('platform', 'GET', wallets)).data as unknown as {
      id: string;
      user_id: string | null;
      frozen: boolean;
    }[];
    assert.deepEqual(
      listed.map(({ user_id, frozen: isFrozen }) => [user_id, isFrozen]),
      [
        [null, true],
        [memberId, false],
      ],
    );
    const epoch = await registerEpoch(postgres, { machine: 'test', pid: 2, kind: 'gateway' });
    const request = { epoch, walletId: acme.walletId, amount: 1n, minimum: 1n };
    assert.deepEqual(await takeLease(postgres, request).then(({ granted, frozen: isFrozen }) => [granted, isFrozen]), [
      0n,
      true,
    ]);
    assert.equal(
      (await front.call('platform', 'PATCH', `${wallets}/${acme.walletId}`, { frozen: false })).data['frozen'],
      false,
    );
    assert.equal((await takeLease(postgres, request)).granted, 1n);
    const entries = await listAudit(postgres, { organizationId: acme.organizationId });
    assert.ok(!isRefused(entries));
    assert.deepEqual(
      entries.items.map(({ action }) => action).filter((action) => action.includes('freeze')),
      ['wallet.unfreeze', 'wallet.freeze'],
    );
    // Another organization's wallet is not found under this one, and nobody else may.
    assert.equal((await front.call('platform', 'PATCH', `${wallets}/${other.walletId}`, { frozen: true })).status, 404);
    assert.equal((await front.call('owner', 'PATCH', `${wallets}/${acme.walletId}`, { frozen: true })).status, 403);
  });
});
