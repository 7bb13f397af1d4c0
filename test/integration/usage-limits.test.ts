// Ceilings as they are changed, and as a principal has and sees them, on a real Postgres.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { UsageLimit } from '../../src/domain/configuration/configuration.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import { replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { readCurrentLimits } from '../../src/storage/postgres/limits/current-limits.ts';
import { returnLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import { createListener } from '../../src/storage/postgres/listen.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { admittedRecord, terminalRecord } from '../support/executions.ts';
import { openTestDatabase, silentLog, type TestDatabase } from '../support/postgres.ts';
import { budget, LimitedOrganization, OPERATOR } from '../support/usage-limits.ts';
import { waitFor } from '../support/waiting.ts';

let database: TestDatabase;
let url: string;
let postgres: Postgres;
before(async () => {
  database = await openTestDatabase();
  ({ url, postgres } = database);
});
after(() => database?.close());

describe('changing limits', () => {
  test('a limit keeps its id and what was used; a higher one is told; a lower one lends nothing more and revokes', async () => {
    const heard: string[] = [];
    const raised: string[] = [];
    const channels = {
      tollgate_lease_revocation: (payload: string) => void heard.push(payload),
      tollgate_lease_room: (payload: string) => void raised.push(payload),
    };
    const listener = createListener({ url, log: silentLog, channels, onReconnect: () => {} });
    await listener.listening;
    try {
      const tenant = await LimitedOrganization.create(postgres, budget(1_000n));
      const [id] = await tenant.limitIds();
      const { scope } = tenant;
      const epoch = await tenant.newEpoch();
      const { grantId } = await tenant.take(epoch, id, 600n);
      await tenant.setLimits(scope, budget(2_000n), { kind: 'requests_per_minute', limit: 5n });
      assert.equal(heard.length, 0);
      await tenant.setLimits(scope, budget(500n));
      await waitFor(
        'revocations',
        () => heard.length,
        (count) => count === 2,
      );
      assert.equal(heard.includes(id), true);
      assert.deepEqual(
        raised.filter((raisedId) => raisedId === id),
        [id],
        'of the higher one every process was told, and of the lower one not',
      );
      assert.deepEqual(await tenant.limitIds(), [id]);
      const short = await tenant.take(epoch, id, 1n);
      assert.deepEqual([short.granted, short.available, short.ceiling], [0n, 0n, 500n]);
      await returnLimitLease(postgres, { epoch, limitId: id, grantId, amount: 200n });
      assert.deepEqual(
        [(await tenant.take(epoch, id, 101n)).granted, (await tenant.take(epoch, id, 100n)).granted],
        [0n, 100n],
      );
      await tenant.setLimits(scope);
      await waitFor(
        'revocations',
        () => heard.length,
        (count) => count === 3,
      );
      assert.equal((await tenant.take(epoch, id, 1n)).gone, true);
      await returnLimitLease(postgres, { epoch, limitId: id, grantId, amount: 500n });
      await tenant.assertBooksAgree();
    } finally {
      await listener.close();
    }
  });

  test('one of each kind, window and model; a model has to be in the catalog', async () => {
    const model = `limited/${randomUUID()}`;
    await postgres.query(
      `INSERT INTO models (id, display_name, kind, tokenizer) VALUES ($1, $1, 'text', 'o200k_base')`,
      [model],
    );
    const ofModel = { kind: 'requests_per_minute', limit: 5n, model } as const;
    const tenant = await LimitedOrganization.create(postgres, { kind: 'requests_per_minute', limit: 9n }, ofModel);
    const { scope } = tenant;
    const twice = await replaceLimits(postgres, OPERATOR, scope, {
      setBy: 'platform',
      limits: [ofModel, { ...ofModel, limit: 6n }],
    });
    assert.deepEqual(twice, {
      refused: 'invalid',
      field: 'limits',
      reason: 'must have at most one of each kind, window and model',
    });
    const unknown = await replaceLimits(postgres, OPERATOR, scope, {
      setBy: 'platform',
      limits: [{ ...ofModel, model: 'nobody/knows' }],
    });
    assert.deepEqual(unknown, {
      refused: 'invalid',
      field: 'limits',
      reason: 'names the model "nobody/knows", which is not in the catalog',
    });
    await assert.rejects(
      postgres.query(
        `INSERT INTO usage_limits (organization_id, kind, amount, model) SELECT organization_id, kind, 1, model
          FROM usage_limits WHERE organization_id = $1`,
        [tenant.owner.organizationId],
      ),
      { code: '23505' },
    );
  });
});

describe('a principal', () => {
  test('has the limits of its key, user, team and organization, and sees how they stand', async () => {
    const tenant = await LimitedOrganization.create(postgres, budget(1_000n), {
      kind: 'requests_per_minute',
      limit: 60n,
    });
    const { organizationId } = tenant.owner;
    const hash = Buffer.alloc(32, organizationId);
    const { rows } = await postgres.query<{ team_id: string; other_team_id: string; user_id: string; key_id: string }>(
      `WITH person AS (INSERT INTO users (email) VALUES ($2 || '@limits.test') RETURNING id),
            member AS (INSERT INTO memberships (organization_id, user_id, role) SELECT $1, id, 'member' FROM person),
            team AS (INSERT INTO teams (organization_id, slug) VALUES ($1, 'a') RETURNING id),
            other AS (INSERT INTO teams (organization_id, slug) VALUES ($1, 'b') RETURNING id),
            key AS (INSERT INTO api_keys (organization_id, team_id, user_id, name, key_hash, key_prefix)
                    SELECT $1, team.id, person.id, 'k', $3, 'tg_' FROM team, person RETURNING id)
       SELECT team.id AS team_id, other.id AS other_team_id, person.id AS user_id, key.id AS key_id
         FROM person, team, other, key`,
      [organizationId, organizationId, hash],
    );
    const ids = rows[0];
    assert.ok(ids !== undefined);
    const requests = (limit: bigint): UsageLimit => ({ kind: 'requests_per_minute', limit });
    await tenant.setLimits({ kind: 'team', organizationId, teamId: ids.team_id }, requests(50n));
    await tenant.setLimits({ kind: 'team', organizationId, teamId: ids.other_team_id }, requests(1n));
    await tenant.setLimits({ kind: 'user', organizationId, userId: ids.user_id }, requests(40n));
    await tenant.setLimits(
      { kind: 'key', organizationId, keyId: ids.key_id },
      { kind: 'concurrent_requests', limit: 3n },
    );

    const principal = await findPrincipalByCredentialHash(postgres, hash);
    assert.ok(principal !== null);
    const shown = ({ limits }: Principal): string[] =>
      limits.map(({ scope, kind, window, amount, model }) => [scope, kind, window, amount, model].join(' '));
    assert.deepEqual(shown(principal).sort(), [
      'key concurrent_requests  3 ',
      'organization budget day 1000 ',
      'organization requests_per_minute  60 ',
      'team requests_per_minute  50 ',
      'user requests_per_minute  40 ',
    ]);

    const epoch = await tenant.newEpoch();
    const limitOf = (scope: string, kind: string): string =>
      principal.limits.find((limit) => limit.scope === scope && limit.kind === kind)?.id ?? '';
    const { grantId } = await tenant.take(epoch, limitOf('organization', 'budget'), 900n);
    await tenant.post(
      epoch,
      terminalRecord(admittedRecord(tenant.owner, { budgets: [grantId] }), { budgetUse: '300', charge: '300' }),
    );
    await tenant.take(epoch, limitOf('team', 'requests_per_minute'), 7n);
    await tenant.take(epoch, limitOf('key', 'concurrent_requests'), 2n);
    const standings = new Map(
      (await readCurrentLimits(postgres, principal)).map((limit) => [`${limit.scope} ${limit.kind}`, limit]),
    );
    const standingOf = (name: string): unknown[] => [
      standings.get(name)?.used,
      standings.get(name)?.lent,
      standings.get(name)?.remaining,
      typeof standings.get(name)?.resetsAtMs,
    ];
    assert.deepEqual(standingOf('organization budget'), [300n, 600n, 700n, 'number']);
    assert.deepEqual(standingOf('team requests_per_minute'), [7n, 7n, 43n, 'object']);
    assert.deepEqual(standingOf('user requests_per_minute'), [0n, 0n, 40n, 'object']);
    // Leased places that no request has taken are free.
    assert.deepEqual(standingOf('key concurrent_requests'), [0n, 0n, 3n, 'object']);
    assert.deepEqual(await readCurrentLimits(postgres, { limits: [] }), []);
    await tenant.setLimits({ kind: 'organization', organizationId }, budget(200n));
    const lowered = await readCurrentLimits(
      postgres,
      (await findPrincipalByCredentialHash(postgres, hash)) ?? { limits: [] },
    );
    assert.deepEqual(lowered.find(({ kind }) => kind === 'budget')?.remaining, 0n);
  });
});
