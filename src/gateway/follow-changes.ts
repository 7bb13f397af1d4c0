// Keeps a gateway process in step with the database: catalog changes, revoked keys and lease recalls are pushed and
// arrive within a second (DESIGN 2, 5).

import type { AllowanceLeases } from '../generation/admission/allowance-leases.ts';
import type { Authenticator } from '../generation/identity/authenticate.ts';
import type { Log } from '../platform/log.ts';
import { CHANGES_CHANNEL, readChange } from '../storage/postgres/changes.ts';
import { createListener, type Listener } from '../storage/postgres/listen.ts';
import type { HeldCatalog } from './held-catalog.ts';
import { readRecall } from './lease-store.ts';

export interface Followed {
  readonly url: string;
  readonly log: Log;
  readonly catalog: HeldCatalog;
  readonly authenticator: Authenticator;
  readonly leases: AllowanceLeases;
  /** This process's. */
  readonly epoch: number;
}

/** Listens from when this resolves. */
export async function followChanges({ url, log, catalog, authenticator, leases, epoch }: Followed): Promise<Listener> {
  const reload = () => {
    catalog
      .reload()
      .catch((fault: unknown) =>
        log.warn({ err: fault }, 'the catalog could not be loaded anew; the present one stays'),
      );
  };
  const listener = createListener({
    url,
    log,
    channels: {
      [CHANGES_CHANNEL]: (payload) => {
        const change = readChange(payload);
        // Said by another version of ours: whatever it means, what was remembered of credentials may be out of date.
        if (change === null) authenticator.forgetAll();
        else if ('id' in change) authenticator.forget(change.id);
        else reload();
      },
      tollgate_lease_recall: (payload) => {
        const { key, byEpoch } = readRecall(payload);
        if (byEpoch !== epoch) leases.callBack(key);
      },
    },
    // Notifications sent while the connection was away are lost: everything they could have said is looked up.
    onReconnect: () => {
      authenticator.doubtAll();
      reload();
      leases.callBackAll();
    },
  });
  await listener.listening;
  return listener;
}
