// Provides the billing operations of storage to the control plane.

import type { BillingStore } from '../../control-plane/billing/billing-store.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { listLimitsOfScope } from '../../storage/postgres/identity/limits.ts';
import { listDeposits, postDeposit } from '../../storage/postgres/ledger/credits.ts';
import { freezeWallet, listWallets, readWallet } from '../../storage/postgres/ledger/payer-wallets.ts';
import { readCurrentLimits } from '../../storage/postgres/limits/current-limits.ts';
import { listLimitsOfPerson } from '../../storage/postgres/limits/person-limits.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';
import {
  getWebhook,
  redeliverWebhooks,
  removeWebhook,
  rotateWebhookSecret,
  setWebhook,
} from '../../storage/postgres/webhooks/webhooks.ts';

export function createBillingStore(postgres: Postgres, { box }: { readonly box: SecretBox }): BillingStore {
  return {
    readWallet: (walletId) => readWallet(postgres, walletId),
    listWallets: (params) => listWallets(postgres, params),
    freezeWallet: (actor, order) => freezeWallet(postgres, actor, order),
    postDeposit: (actor, order) => postDeposit(postgres, actor, order),
    listDeposits: (params) => listDeposits(postgres, params),
    async readCurrentLimits({ credential, organizationId, userId, limits }) {
      return readCurrentLimits(postgres, {
        limits: credential === 'key' ? limits : await listLimitsOfPerson(postgres, { organizationId, userId }),
      });
    },

    async readCurrentLimitsOf(scope) {
      const limits = await listLimitsOfScope(postgres, scope);
      return isRefused(limits) ? limits : readCurrentLimits(postgres, { limits });
    },

    getWebhook: (organizationId) => getWebhook(postgres, organizationId),
    setWebhook: (actor, order) => setWebhook(postgres, box, actor, order),
    rotateWebhookSecret: (actor, organizationId) => rotateWebhookSecret(postgres, box, actor, organizationId),
    removeWebhook: (actor, organizationId) => removeWebhook(postgres, actor, organizationId),
    redeliverWebhooks: (actor, organizationId) => redeliverWebhooks(postgres, actor, organizationId),
  };
}
