// The billing routes of the control plane over HTTP, on a real Postgres, in the test's process. The test decides who
// calls.

import { randomUUID } from 'node:crypto';
import { ChangeMeter } from '../../src/control-plane/change-meter.ts';
import type { GenerationLookup } from '../../src/control-plane/executions/get-generation.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { ROLE_PERMISSIONS } from '../../src/domain/identity/roles.ts';
import { createBillingStore } from '../../src/gateway/control-plane/billing-store.ts';
import { createIdentityStore } from '../../src/gateway/control-plane/identity-store.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import { findGeneration } from '../../src/storage/postgres/ledger/generations.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { httpCall } from './http-call.ts';
import { startHttpFront } from './http-front.ts';
import { secretsOf } from './installation-secrets.ts';
import { principalOf } from './principals.ts';
import { NOTHING_BEHIND } from './route-table.ts';

const MASTER_KEY = Buffer.alloc(32, 7);
const PUBLIC_TARGETS = { allowHttp: false, allowPrivate: false };

/** A valid principal without an owner; tests add the owner. */
export const NOBODY: Principal = {
  ...principalOf('', {
    apiKeyId: randomUUID(),
    walletId: null,
    billed: false,
    permissions: ['inference', 'usage.read'],
  }),
  organizationId: null,
};
/** A person who administers the platform, without an active organization. */
export const PLATFORM: Principal = {
  ...NOBODY,
  credential: 'token',
  userId: randomUUID(),
  permissions: ['platform.admin'],
  platformAdmin: true,
};
export const OWNER: Principal = {
  ...NOBODY,
  credential: 'token',
  userId: randomUUID(),
  permissions: ROLE_PERMISSIONS.owner,
};

type Json = Readonly<Record<string, unknown>>;

export interface BillingAnswer {
  readonly status: number;
  /** The parsed body. */
  readonly body: Json;
  /** The `data` of the body. */
  readonly data: Json;
  readonly text: string;
}

export interface BillingFront {
  readonly url: string;
  /** Calls as the principal of that name. */
  call(as: string, method: string, path: string, body?: Json): Promise<BillingAnswer>;
  stop(): Promise<void>;
}

export async function startBillingFront(
  postgres: Postgres,
  principals: Readonly<Record<string, Principal>>,
  lookup: Partial<GenerationLookup> = {},
): Promise<BillingFront> {
  const parts = {
    ...NOTHING_BEHIND,
    authenticator: new Authenticator(async (credential) => principals[credential] ?? null, systemClock),
    changeMeter: new ChangeMeter(systemClock, 1_000_000),
    billing: createBillingStore(postgres, secretsOf(MASTER_KEY)),
    identity: createIdentityStore(postgres, secretsOf(MASTER_KEY)),
    webhookTargets: PUBLIC_TARGETS,
    lookup: {
      findGeneration: (params: Parameters<typeof findGeneration>[1]) => findGeneration(postgres, params),
      postingPassed: async () => true,
      clock: systemClock,
      isDraining: () => false,
      ...lookup,
    },
  } as unknown as RouteParts;
  const front = await startHttpFront(createRoutes(parts));
  return {
    url: front.url,
    async call(as, method, path, body) {
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await httpCall(`${front.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${as}` },
        ...content,
      });
      const text = answer.body.toString();
      const parsed = JSON.parse(text) as Json;
      return { status: answer.status, body: parsed, data: parsed['data'] as Json, text };
    },
    stop: () => front.stop(),
  };
}
