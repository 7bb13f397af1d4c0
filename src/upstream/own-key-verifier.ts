// Asks the provider of an organization's own key whether it accepts the key, over a connection that serves nothing
// else. Once a day for each address, it also asks with a random key: a provider that accepts a random key accepts any,
// so its answers prove nothing about a key.

import { randomBytes, randomUUID } from 'node:crypto';
import type { Provider } from '../domain/models/provider.ts';
import type { KeyVerdict } from '../domain/own-keys/key-changes.ts';
import type { OwnProvider } from '../domain/own-keys/key-kinds.ts';
import { BoundedMap } from '../platform/bounded-map.ts';
import type { Clock } from '../platform/clock.ts';
import type { Providers } from './providers.ts';
import { type Verification, verifyProvider } from './verify-provider.ts';

/** How long the answer to a random key is remembered. */
const REMEMBERED_MS = 86_400_000;
/** A limit for safety, since customers choose the addresses. A forgotten address is asked again. */
const ADDRESSES_MAX = 10_000;
/** The beginning of the random key. No provider issues keys like it. */
const RANDOM_KEY_PREFIX = 'sk-nobodys-key-';

interface Found {
  readonly isPublic: boolean;
  readonly atMs: number;
}

export class OwnKeyVerifier {
  private readonly through: Providers;
  private readonly clock: Clock;
  /** By address: whether the provider there accepted a random key. */
  private readonly found = new BoundedMap<string, Found>(ADDRESSES_MAX);

  constructor(through: Providers, clock: Clock) {
    this.through = through;
    this.clock = clock;
  }

  /** null: the provider does not answer. */
  async verify(own: OwnProvider, secret: string): Promise<KeyVerdict | null> {
    const { result, status, reason } = await this.ask(own, secret);
    switch (result) {
      case 'good':
        return (await this.answersAnybody(own))
          ? { state: 'unverified', reason: 'the provider accepts any key, so its answer verifies none' }
          : { state: 'active', reason: null };
      case 'unverified':
        return { state: 'unverified', reason: `the provider ${reason}` };
      case 'rejected':
        return { state: 'invalid', reason: `the provider ${reason}` };
      case 'unreachable':
        return status === null ? null : { state: 'unverified', reason: `the provider ${reason}` };
    }
  }

  /**
   * Why the provider's address may not be called, as the rest of a sentence that begins with "it"; null: nothing
   * forbids it that can be seen without calling.
   */
  addressProblem({ provider, isGuarded }: OwnProvider): string | null {
    return this.through.addressProblem({ ...provider, own: { keyId: '', isGuarded } });
  }

  private async answersAnybody(own: OwnProvider): Promise<boolean> {
    const address = addressOf(own.provider);
    const nowMs = this.clock.monotonicMs();
    const found = this.found.get(address);
    if (found !== undefined && nowMs - found.atMs < REMEMBERED_MS) return found.isPublic;
    const { status } = await this.ask(own, RANDOM_KEY_PREFIX + randomBytes(24).toString('hex'));
    // A provider that does not answer now is asked again with its next key.
    if (status === null) return false;
    const isPublic = status >= 200 && status < 300;
    this.found.set(address, { isPublic, atMs: nowMs });
    return isPublic;
  }

  private async ask({ provider, isGuarded }: OwnProvider, secret: string): Promise<Verification> {
    const asked = { ...provider, apiKey: secret, own: { keyId: `verification ${randomUUID()}`, isGuarded } };
    try {
      return await verifyProvider(asked, this.through);
    } finally {
      this.through.leave(asked);
    }
  }
}

function addressOf({ id, baseUrl, auth, requests }: Provider): string {
  return JSON.stringify([id, baseUrl, auth, requests?.preset]);
}
