// Asks the provider of an organization's own key whether it accepts the key, over a connection that is nobody else's.
// Once a day it also asks with a key that nobody has: a provider that accepts that one answers anybody, and its answers
// prove nothing about a key.

import { randomBytes, randomUUID } from 'node:crypto';
import type { Provider } from '../domain/models/provider.ts';
import type { KeyVerdict } from '../domain/own-keys/key-changes.ts';
import type { OwnProvider } from '../domain/own-keys/key-kinds.ts';
import { BoundedMap } from '../platform/bounded-map.ts';
import type { Clock } from '../platform/clock.ts';
import type { Providers } from './providers.ts';
import { type Verification, verifyProvider } from './verify-provider.ts';

const ASKED_AGAIN_MS = 86_400_000;
/** Customers name addresses of their own; of one that is forgotten it is found out again. */
const ADDRESSES_MAX = 10_000;
/** No provider gives out such a key. */
const NOBODYS_KEY = 'sk-nobodys-key-';

interface Found {
  readonly isPublic: boolean;
  readonly atMs: number;
}

export class OwnKeyVerifier {
  private readonly through: Providers;
  private readonly clock: Clock;
  /** By address: whether what verifies a key there answers anybody. */
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
          ? { state: 'unverified', reason: 'the provider answers anybody what would verify the key' }
          : { state: 'active', reason: null };
      case 'unverified':
        return { state: 'unverified', reason: `the provider ${reason}` };
      case 'rejected':
        return { state: 'invalid', reason: `the provider ${reason}` };
      case 'unreachable':
        return status === null ? null : { state: 'unverified', reason: `the provider ${reason}` };
    }
  }

  /** What keeps its address from being called, to go on from "it"; null: nothing that is seen without calling. */
  addressProblem({ provider, isGuarded }: OwnProvider): string | null {
    return this.through.addressProblem({ ...provider, own: { keyId: '', isGuarded } });
  }

  private async answersAnybody(own: OwnProvider): Promise<boolean> {
    const address = addressOf(own.provider);
    const nowMs = this.clock.monotonicMs();
    const found = this.found.get(address);
    if (found !== undefined && nowMs - found.atMs < ASKED_AGAIN_MS) return found.isPublic;
    const { status } = await this.ask(own, NOBODYS_KEY + randomBytes(24).toString('hex'));
    // One that does not answer now is asked with the next key.
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
