// Keeps a gateway process in step with the database: catalog changes, revoked keys and lease recalls are pushed and arrive within a second (DESIGN 2, 5).

import type { WalletLeases } from '../data-plane/admission/wallet-leases.ts';
import type { Authenticator } from '../data-plane/identity/authenticate.ts';
import type { Log } from '../platform/log.ts';
import { createListener, type Listener } from '../storage/postgres/listen.ts';
import type { HeldCatalog } from './held-catalog.ts';

export interface Followed {
  readonly url: string;
  readonly log: Log;
  readonly catalog: HeldCatalog;
  readonly authenticator: Authenticator;
  readonly leases: WalletLeases;
}

/** Listens from when this resolves. */
export async function followChanges({ url, log, catalog, authenticator, leases }: Followed): Promise<Listener> {
  const reload = () => {
    // Whatever changed, what was remembered of credentials may be out of date: asking again is cheap.
    authenticator.forgetAll();
    catalog.reload().catch((fault: unknown) => log.warn({ err: fault }, 'the catalog could not be loaded anew; the present one stays'));
  };
  const listener = createListener({
    url,
    log,
    channels: {
      tollgate_changed: (what) => {
        if (what === 'catalog') reload();
        else authenticator.forgetAll();
      },
      tollgate_lease_recall: (walletId) => {
        leases.giveBack(walletId).catch((fault: unknown) => log.warn({ err: fault }, 'a recalled lease could not be handed back'));
      },
    },
    // Notifications sent while the connection was away are lost: everything they could have said is looked up.
    onReconnect: reload,
  });
  await listener.listening;
  return listener;
}
