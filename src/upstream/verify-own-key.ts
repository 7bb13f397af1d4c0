// Asks the provider of an organization's own key whether it accepts the key, over a connection that is nobody else's.

import { randomUUID } from 'node:crypto';
import type { KeyVerdict } from '../domain/own-keys/key-changes.ts';
import type { OwnProvider } from '../domain/own-keys/key-kinds.ts';
import type { Providers } from './providers.ts';
import { verifyProvider } from './verify-provider.ts';

/** null: the provider does not answer. */
export async function verifyOwnKey(
  { provider, isGuarded }: OwnProvider,
  secret: string,
  through: Providers,
): Promise<KeyVerdict | null> {
  const own = { keyId: `verification ${randomUUID()}`, isGuarded };
  const { result, reason } = await verifyProvider({ ...provider, apiKey: secret, own }, through);
  switch (result) {
    case 'good':
      return { state: 'active', reason: null };
    case 'unverified':
      return { state: 'unverified', reason: `the provider ${reason}` };
    case 'rejected':
      return { state: 'invalid', reason: `the provider ${reason}` };
    case 'unreachable':
      return null;
  }
}
