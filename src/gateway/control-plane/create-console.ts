// Puts together what the routes of the console need.

import { fileURLToPath } from 'node:url';
import type { CompleteConfig } from '../../config.ts';
import { readBuiltConsole } from '../../control-plane/console/built-console.ts';
import type { ConsoleParts } from '../../control-plane/console/console-parts.ts';
import { ConsoleSessions } from '../../control-plane/console/console-sessions.ts';
import { SealedTransactions } from '../../control-plane/console/sealed-transaction.ts';
import { SessionCookie } from '../../control-plane/console/session-cookie.ts';
import { readSignInFile } from '../../installation/read-sign-in-file.ts';
import type { Clock } from '../../platform/clock.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import type { Log } from '../../platform/log.ts';
import { createPlaygroundKey } from '../../storage/postgres/identity/keys/playground-keys.ts';
import {
  endSession,
  extendSession,
  nameSession,
  openSession,
  openSessionByLink,
} from '../../storage/postgres/identity/sessions.ts';
import { signInPerson } from '../../storage/postgres/identity/sign-in-people.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

const BUILT_CONSOLE = fileURLToPath(new URL('../../console/built', import.meta.url));
const PLAYGROUND_KEY_MS = 900_000;
const LINK_LOOK_UPS = { underWayMax: 1, waitingMax: 100, waitMsMax: 2_000 } as const;
const PROVIDER_CALLS = { underWayMax: 8, underWayOfSourceMax: 4, waitingMax: 100, waitMsMax: 10_000 } as const;

export interface ConsoleResources {
  readonly config: Pick<CompleteConfig, 'console' | 'signInFile' | 'publicUrl' | 'brand' | 'adminToken'>;
  readonly log: Log;
  readonly clock: Clock;
  readonly postgres: Postgres;
  readonly secrets: InstallationSecrets;
}

export function createConsole({ config, log, clock, postgres, secrets }: ConsoleResources): ConsoleParts {
  const extend = (sessionId: string) =>
    extendSession(postgres, sessionId).catch((fault: unknown) =>
      log.warn({ err: fault }, 'a session of the console could not be extended'),
    );
  return {
    built: config.console ? readBuiltConsole(BUILT_CONSOLE) : null,
    sessions: new ConsoleSessions(new SessionCookie(config.publicUrl), extend, clock),
    store: {
      openSession: (params) => openSession(postgres, secrets, params, config.adminToken),
      openSessionByLink: (code) => openSessionByLink(postgres, secrets, code),
      endSession: (sessionId) => endSession(postgres, sessionId),
      nameSession: (of) => nameSession(postgres, of),
    },
    linkLookUps: new FairQueue(LINK_LOOK_UPS),
    createPlaygroundKey: config.console
      ? (actor, params) =>
          createPlaygroundKey(postgres, secrets, actor, { ...params, expiresAtMs: clock.nowMs() + PLAYGROUND_KEY_MS })
      : null,
    oidc: {
      providers: readSignInFile(config.signInFile),
      transactions: new SealedTransactions(secrets.pepper),
      providerCalls: new FairQueue(PROVIDER_CALLS),
      signIn: (provider, person) => signInPerson(postgres, provider, person),
      publicUrl: config.publicUrl,
      clock,
      log,
      discovered: new Map(),
    },
    brand: config.brand,
  };
}
