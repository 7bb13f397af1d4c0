// Prepares in Postgres what the first request of a process needs, before the process listens: open connections, and the
// pages and plans of identity and leases. After a start on a machine whose memory was reclaimed, the first request
// would otherwise wait longer for them than a request may.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../platform/log.ts';
import { StoreBusy } from '../platform/store-busy.ts';
import { findAnyKeyHash, findPrincipalByCredentialHash } from '../storage/postgres/catalog/credentials.ts';
import { takeLease } from '../storage/postgres/ledger/wallets.ts';
import type { Postgres } from '../storage/postgres/pool.ts';

const RETRY_MS = 500;

export interface FirstRequestParts {
  readonly postgres: Postgres;
  /** How many connections requests may use; each prepares its own statements. */
  readonly connections: number;
  readonly epoch: number;
  readonly log: Log;
}

/** Resolves once a credential and a lease were asked for on every connection. Until then it tries again. */
export async function prepareFirstRequest(parts: FirstRequestParts): Promise<void> {
  const { connections, log } = parts;
  for (;;) {
    try {
      const keyHash = await findAnyKeyHash(parts.postgres);
      await Promise.all(Array.from({ length: connections }, () => ask(parts, keyHash)));
      return;
    } catch (fault) {
      log.warn({ err: fault, retryInMs: RETRY_MS }, 'this process does not listen yet: Postgres did not answer');
      await sleep(RETRY_MS);
    }
  }
}

/**
 * Asks for a credential and a lease, as a request does. The lease has the amount 0: nobody knows which wallets will be
 * used, and other processes would have to ask for the return of what is leased here.
 */
async function ask({ postgres, epoch }: FirstRequestParts, keyHash: Buffer | null): Promise<void> {
  const principal = keyHash === null ? null : await findPrincipalByCredentialHash(postgres, keyHash);
  const walletId = principal?.walletId ?? null;
  if (walletId === null) return;
  await takeLease(postgres, { epoch, walletId, amount: 0n, minimum: 0n }).catch((fault: unknown) => {
    // Another transaction has this wallet locked, which keeps no other wallet from being served.
    if (!(fault instanceof StoreBusy)) throw fault;
  });
}
