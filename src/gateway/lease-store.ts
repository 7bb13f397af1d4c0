// The Postgres side of wallet leases, bound to this process's epoch.

import type { LeaseStore } from '../data-plane/admission/wallet-leases.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { recallLeases, returnLease, takeLease } from '../storage/postgres/wallets.ts';

export function createLeaseStore(postgres: Postgres, epoch: number): LeaseStore {
  return {
    takeLease: (walletId, amount, minimum) => takeLease(postgres, { epoch, walletId, amount, minimum }),
    returnLease: (walletId, amount) => returnLease(postgres, { epoch, walletId, amount }),
    recall: (walletId) => recallLeases(postgres, walletId),
  };
}
