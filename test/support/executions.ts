// Wallets and spool records for tests of money: an organization with credit, and records as a gateway would write them.

import { randomUUID } from 'node:crypto';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import type { AdmittedRecord, TerminalRecord } from '../../src/records/execution-record.ts';
import { deposit } from '../../src/storage/postgres/ledger/credits.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';

export interface FundedOrganization {
  readonly organizationId: string;
  readonly walletId: string;
}

const nextExecutionId = createExecutionIdSource(systemClock);

/** An organization with a wallet of `credit` pico-dollars. */
export async function fundOrganization(postgres: Postgres, credit: bigint): Promise<FundedOrganization> {
  const { rows } = await postgres.query<{ organization_id: string; wallet_id: string }>(
    `WITH made AS (INSERT INTO organizations (slug, display_name, billing) VALUES ($1, $1, 'prepaid') RETURNING id)
     INSERT INTO wallets (organization_id) SELECT id FROM made RETURNING organization_id, id AS wallet_id`,
    [`org-${randomUUID()}`],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('no wallet was made');
  if (credit > 0n) await deposit(postgres, { walletId: row.wallet_id, amount: picoUsd(credit), reference: 'test' });
  return { organizationId: row.organization_id, walletId: row.wallet_id };
}

export function admittedRecord(owner: FundedOrganization, changes: Partial<AdmittedRecord> = {}): AdmittedRecord {
  return {
    type: 'admitted',
    id: nextExecutionId(),
    admittedAtMs: 1_790_000_000_000,
    organizationId: owner.organizationId,
    teamId: null,
    userId: null,
    apiKeyId: '11111111-1111-4111-8111-111111111111',
    walletId: owner.walletId,
    api: 'chat_completions',
    requestedModel: 'sim/large[1m]',
    model: 'sim/large',
    provider: 'sim',
    providerModel: 'large-2026',
    priceVersion: '1',
    streamed: true,
    clientRequestId: 'request-1',
    tags: ['team:a', 'b'],
    authorizedAmount: '1000',
    requestBytes: 512,
    ...changes,
  };
}

export function terminalRecord(start: AdmittedRecord, changes: Partial<TerminalRecord> = {}): TerminalRecord {
  return {
    ...start,
    type: 'terminal',
    endedAtMs: start.admittedAtMs + 250,
    outcome: 'completed',
    status: 200,
    errorCode: null,
    usage: {
      inputTokens: 10,
      cachedInputTokens: 2,
      cacheWriteTokens: null,
      outputTokens: 20,
      reasoningTokens: 5,
      images: null,
    },
    usageSource: 'reported',
    billingStatus: 'final',
    ratedCost: '700',
    charge: '700',
    suspense: '0',
    latencyMs: 250.5,
    ttftMs: 40.25,
    responseBytes: 2048,
    ...changes,
  };
}
