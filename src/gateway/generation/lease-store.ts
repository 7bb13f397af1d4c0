// The Postgres side of quota leases, of wallets and limits alike, bound to this process's epoch.

import { setTimeout as sleep } from 'node:timers/promises';
import type { NotDone } from '../../domain/quotas/lease.ts';
import type { LeaseStore, LeaseTime } from '../../generation/admission/leases/lease-store.ts';
import type { QuotaLeases } from '../../generation/admission/leases/quota-leases.ts';
import type { Clock } from '../../platform/clock.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import { recoverLease, returnLease, revokeLeases, takeLease } from '../../storage/postgres/ledger/wallets.ts';
import { recoverLimitLease, returnLimitLease, takeLimitLease } from '../../storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

/** `onNotDone` is told of a call that Postgres refused or gave up because of a lock. */
export function createLeaseStore(
  postgres: Postgres,
  epoch: number,
  metrics: MetricsRegistry,
  onNotDone: (error: unknown) => void = () => undefined,
): LeaseStore {
  const notDone = (error: unknown): NotDone => {
    const why = notDoneOrThrow(error);
    onNotDone(error);
    return why;
  };
  const calls = metrics.counter(
    'tollgate_lease_calls_total',
    'Calls to the database about leases; of revocations, which go together, each counts.',
    ['call', 'kind'],
  );
  return {
    take({ kind, key }, { amount, minimum, present }, call) {
      calls.labels('take', kind).increment();
      if (kind !== 'credit')
        return takeLimitLease(postgres, { epoch, limitId: key, amount, minimum, present, call }).catch(notDone);
      return takeLease(postgres, { epoch, walletId: key, amount, minimum, call }).then(
        (answer) => ({ ...answer, ...OF_WALLETS, grantId: key }),
        notDone,
      );
    },
    giveBack({ kind, key }, grantId, amount, call) {
      calls.labels('give_back', kind).increment();
      const given =
        kind === 'credit'
          ? returnLease(postgres, { epoch, walletId: key, amount, call })
          : returnLimitLease(postgres, { epoch, limitId: key, grantId, amount, call });
      return given.then(() => 'done' as const, notDone);
    },
    recover({ kind, key }, call) {
      calls.labels('recover', kind).increment();
      const recovered =
        kind === 'credit'
          ? recoverLease(postgres, { epoch, walletId: key, call })
          : recoverLimitLease(postgres, { epoch, limitId: key, call });
      return recovered.catch(notDone);
    },
    revoke(quotas) {
      for (const { kind } of quotas) calls.labels('revoke', kind).increment();
      return revokeLeases(
        postgres,
        quotas.map(({ key }) => `${key} ${epoch}`),
      );
    },
    async probe() {
      await postgres.query('SELECT 1');
    },
  };
}

/** A lock that did not come free in time, a deadlock. A statement that took too long is a lost call. */
const LOCKED_SQLSTATES = new Set(['55P03', '40P01']);
/**
 * Errors that the SQL functions raise and that constraints of tables cause. The error that an epoch is fenced concerns
 * everything that this process asks, and stays a failed call.
 */
const REFUSED_SQLSTATE = /^(?:22|23|P0)/;

function notDoneOrThrow(error: unknown): NotDone {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && LOCKED_SQLSTATES.has(code)) return 'busy';
  if (typeof code === 'string' && REFUSED_SQLSTATE.test(code)) return 'refused';
  throw error;
}

/** Credit does not expire, and has no ceiling but the balance. */
const OF_WALLETS = { validForMs: null, presentMoved: false, ceiling: null, retryAfterMs: null, gone: false } as const;

/**
 * A revocation names the epoch that sends it, so that its sender ignores it. A revocation without an epoch is for every
 * process, for example when a wallet is frozen or a limit lowered.
 */
function readRevocation(payload: string): { readonly key: string; readonly byEpoch: number | null } {
  const [key = '', epoch] = payload.split(' ');
  return { key, byEpoch: epoch === undefined ? null : Number(epoch) };
}

/** Handles a message on the channel of revocations, in the process of `epoch`. */
export function hearRevocation(leases: QuotaLeases, payload: string, epoch: number): void {
  const { key, byEpoch } = readRevocation(payload);
  if (byEpoch === epoch) return;
  // Without an epoch, the wallet or limit itself was changed, perhaps for the better: a wallet may have been thawed.
  if (byEpoch === null) leases.withdraw(key);
  else leases.revoke(key);
}

export function createLeaseTime(clock: Clock): LeaseTime {
  return {
    monotonicMs: () => clock.monotonicMs(),
    // Timers count whole milliseconds, and so may end up to two early. Who was to look at the end would look twice.
    wait: (ms) => sleep(Math.ceil(ms) + 1, undefined, { ref: false }).then(socketsRead),
  };
}
