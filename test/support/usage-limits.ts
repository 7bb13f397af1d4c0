// An organization with credit and usage limits, and processes that lease from them: shared by the tests of limits on
// Postgres.

import assert from 'node:assert/strict';
import type { UsageLimit } from '../../src/domain/configuration/configuration.ts';
import type { LimitScope } from '../../src/domain/identity/limit-scope.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { LeaseAnswer } from '../../src/domain/quotas/lease.ts';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import { replaceLimits } from '../../src/storage/postgres/identity/limits.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { postExecutions } from '../../src/storage/postgres/ledger/post-executions.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { type LimitLeaseRequest, takeLimitLease } from '../../src/storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { type FundedOrganization, fundOrganization } from './executions.ts';
import { untilNotLocked } from './lease-callers.ts';

export const OPERATOR = { kind: 'cli', userId: null, label: 'test' } as const;

export const budget = (limit: bigint, window: 'hour' | 'day' | 'week' | 'month' = 'day'): UsageLimit => ({
  kind: 'budget',
  window,
  limit: picoUsd(limit),
});

export class LimitedOrganization {
  readonly owner: FundedOrganization;
  readonly scope: LimitScope;
  private readonly postgres: Postgres;
  private posted = 0;

  private constructor(postgres: Postgres, owner: FundedOrganization) {
    this.postgres = postgres;
    this.owner = owner;
    this.scope = { kind: 'organization', organizationId: owner.organizationId };
  }

  static async create(postgres: Postgres, ...limits: UsageLimit[]): Promise<LimitedOrganization> {
    const made = new LimitedOrganization(postgres, await fundOrganization(postgres, 10n ** 9n));
    await made.setLimits(made.scope, ...limits);
    return made;
  }

  async setLimits(scope: LimitScope, ...limits: UsageLimit[]): Promise<void> {
    const stored = await replaceLimits(this.postgres, OPERATOR, scope, { setBy: 'platform', limits });
    assert.ok('items' in stored, 'the limits were refused');
  }

  /** The ids of all its limits, by kind and window. */
  async limitIds(): Promise<[string, ...string[]]> {
    const { rows } = await this.postgres.query<{ id: string }>(
      'SELECT id FROM usage_limits WHERE organization_id = $1 ORDER BY kind, time_window',
      [this.owner.organizationId],
    );
    return rows.map(({ id }) => id) as [string, ...string[]];
  }

  /** Starts a process that has a lease of the organization's wallet. */
  async newEpoch(): Promise<number> {
    const epoch = await registerEpoch(this.postgres, { machine: 'm', pid: 1, kind: 'gateway' });
    const request = { epoch, walletId: this.owner.walletId, amount: 100_000n, minimum: 1n };
    await untilNotLocked(() => takeLease(this.postgres, request));
    return epoch;
  }

  take(epoch: number, limitId: string, amount: bigint, more: Partial<LimitLeaseRequest> = {}): Promise<LeaseAnswer> {
    const request = { epoch, limitId, amount, minimum: amount, present: null, ...more };
    return untilNotLocked(() => takeLimitLease(this.postgres, request));
  }

  post(epoch: number, ...records: ExecutionRecord[]): Promise<unknown> {
    this.posted += 1;
    const segment = this.posted;
    return this.postgres.transaction((client) =>
      postExecutions(client, { epoch, segment, fromOffset: 0, toOffset: 1, records }),
    );
  }

  async assertBooksAgree(): Promise<void> {
    assert.deepEqual(await findBrokenInvariants(this.postgres), []);
  }
}
