// Keeps a gateway process in step with the database: changes of the catalog and of guardrails, revoked keys and
// revoked leases are pushed and arrive within a second.

import type { QuotaLeases } from '../generation/admission/leases/quota-leases.ts';
import type { Authenticator } from '../generation/identity/authenticate.ts';
import type { HeldOwnKeys } from '../generation/own-keys/held-own-keys.ts';
import type { Log } from '../platform/log.ts';
import { CHANGES_CHANNEL, readChange } from '../storage/postgres/changes.ts';
import {
  POSTING_WANTED_CHANNEL,
  SPOOLS_ASKED_CHANNEL,
  SPOOLS_TOLD_CHANNEL,
} from '../storage/postgres/ledger/open-spools.ts';
import { LEASE_REVOCATION_CHANNEL, LEASE_ROOM_CHANNEL } from '../storage/postgres/ledger/wallets.ts';
import { createListener, type Listener } from '../storage/postgres/listen.ts';
import { OWN_KEYS_DUE_CHANNEL } from '../storage/postgres/own-keys/keys-to-check.ts';
import type { HeldCatalog } from './generation/held-catalog.ts';
import type { HeldGuardrails } from './generation/held-guardrails.ts';
import { hearRevocation } from './generation/lease-store.ts';
import type { OwnKeyChecks } from './generation/own-key-checks.ts';
import type { PostingFence } from './generation/posting-fence.ts';

export interface Followed {
  readonly url: string;
  readonly log: Log;
  readonly catalog: HeldCatalog;
  readonly guardrails: HeldGuardrails;
  readonly authenticator: Authenticator;
  readonly ownKeys: HeldOwnKeys;
  readonly ownKeyChecks: Pick<OwnKeyChecks, 'start'>;
  readonly leases: QuotaLeases;
  readonly postingFence: PostingFence;
  /** The epoch of this process. */
  readonly epoch: number;
}

/** Resolves once it listens. */
export async function followChanges(followed: Followed): Promise<Listener> {
  const { url, log, catalog, guardrails, authenticator, ownKeys, ownKeyChecks, leases, postingFence, epoch } = followed;
  const listener = createListener({
    url,
    log,
    channels: {
      [CHANGES_CHANNEL]: (payload) => {
        const change = readChange(payload);
        // The notification comes from another version of the program: whatever is remembered may be out of date.
        if (change === null) {
          authenticator.forgetAll();
          ownKeys.forgetAll();
          catalog.mayHaveChanged();
          guardrails.mayHaveChanged();
        } else if ('ownKeysOf' in change) ownKeys.forget(change.ownKeysOf);
        else if ('guardrailsOf' in change) guardrails.changed(change.guardrailsOf);
        else if ('id' in change) authenticator.forget(change.id);
        else if ('catalog' in change) catalog.mayHaveChanged();
      },
      [LEASE_REVOCATION_CHANNEL]: (payload) => hearRevocation(leases, payload, epoch),
      [LEASE_ROOM_CHANNEL]: (key) => leases.expectRoom(key),
      [OWN_KEYS_DUE_CHANNEL]: () => ownKeyChecks.start(),
      [POSTING_WANTED_CHANNEL]: () => postingFence.hearWanted(),
      [SPOOLS_ASKED_CHANNEL]: (payload) => postingFence.answer(payload),
      [SPOOLS_TOLD_CHANNEL]: (payload) => postingFence.hear(payload),
    },
    // Notifications that were sent while the connection was away are lost, so everything they could concern is looked
    // up. Postgres answers on this connection, and may not answer on others yet: until it does, what is remembered
    // serves.
    onReconnect: () => {
      authenticator.markAllUncertain();
      ownKeys.markAllUncertain();
      catalog.mayHaveChanged();
      guardrails.mayHaveChanged();
      leases.renewAll();
    },
  });
  await listener.listening;
  // Nobody here was told of changes between the first loads and this moment.
  catalog.mayHaveChanged();
  guardrails.mayHaveChanged();
  return listener;
}
