// What signing in by OpenID providers needs; the composition root provides it.

import type { Configuration } from 'openid-client';
import type { SignedIn, SignedInPerson, SignInProvider } from '../../domain/identity/sign-in-provider.ts';
import type { Clock } from '../../platform/clock.ts';
import type { FairQueue } from '../../platform/fair-queue.ts';
import type { Log } from '../../platform/log.ts';
import type { SealedTransactions } from './sealed-transaction.ts';

export type SignInPerson = (
  provider: SignInProvider,
  person: SignedInPerson,
) => Promise<SignedIn | { readonly problem: string }>;

export interface OidcParts {
  readonly providers: readonly SignInProvider[];
  readonly transactions: SealedTransactions;
  /** Anybody can make the gateway call a provider, without a credential, so few calls are made at once. */
  readonly providerCalls: FairQueue;
  readonly signIn: SignInPerson;
  readonly publicUrl: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The configuration of each provider, once it was discovered. */
  readonly discovered: Map<string, Configuration>;
}
