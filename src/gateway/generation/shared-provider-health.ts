// Tells the other processes every few seconds what this one has seen of the providers, and learns what they have seen.
// Requests read only what is in memory here.

import { type ProviderHealth, type ProviderPause, UNKNOWN_HEALTH } from '../../domain/models/provider-health.ts';
import type { ServingCatalog } from '../../generation/catalog/serving-catalog.ts';
import type { Cooldowns } from '../../generation/pauses/cooldowns.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import {
  type ObservedRow,
  readProviderHealth,
  writeProviderHealth,
} from '../../storage/postgres/catalog/provider-health.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { ObservedProviders } from '../../upstream/observed-providers.ts';

export interface SharedHealthParts {
  readonly postgres: Postgres;
  readonly epoch: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly observed: ObservedProviders;
  readonly cooldowns: Cooldowns;
  readonly catalog: { readonly serving: ServingCatalog };
}

export class SharedProviderHealth {
  private readonly parts: SharedHealthParts;
  private merged: ReadonlyMap<string, ProviderHealth> = new Map();
  /** Providers whose pauses were written last time: the end of a pause is written, too. */
  private paused: ReadonlySet<string> = new Set();
  private isSharing = false;
  private isAway = false;

  constructor(parts: SharedHealthParts) {
    this.parts = parts;
  }

  /** The health of a provider as all processes together know it, at most some seconds old. */
  healthOf(providerId: string): ProviderHealth {
    return this.merged.get(providerId) ?? UNKNOWN_HEALTH;
  }

  /** Called from a clock. Never rejects. */
  async share(): Promise<void> {
    if (this.isSharing) return;
    this.isSharing = true;
    try {
      const { postgres, epoch } = this.parts;
      const rows = this.takeRows();
      if (rows.length > 0) await writeProviderHealth(postgres, epoch, rows);
      this.merged = await readProviderHealth(postgres);
      this.isAway = false;
    } catch (fault) {
      // Logged once for each time that the database is away; meanwhile the remembered health is shown.
      if (!this.isAway) this.parts.log.warn({ err: fault }, 'the health of providers could not be shared');
      this.isAway = true;
    } finally {
      this.isSharing = false;
    }
  }

  /** What has changed since the last time. If it cannot be written, it is lost until the provider is called again. */
  private takeRows(): readonly ObservedRow[] {
    const { observed } = this.parts;
    const changes = observed.takeChanges();
    const pauses = this.pausesByProvider();
    const ids = new Set([...changes.keys(), ...pauses.keys(), ...this.paused]);
    this.paused = new Set(pauses.keys());
    return [...ids].map((providerId) => ({
      ...UNKNOWN_HEALTH,
      ...observed.get(providerId),
      providerId,
      pauses: pauses.get(providerId) ?? [],
    }));
  }

  private pausesByProvider(): ReadonlyMap<string, readonly ProviderPause[]> {
    const { cooldowns, clock, catalog } = this.parts;
    const byProvider = new Map<string, ProviderPause[]>();
    for (const { providerId, origin, model, leftMs, isForAll } of cooldowns.list(clock.monotonicMs())) {
      const pause = { model, untilMs: clock.nowMs() + leftMs, isForAll };
      const ids = providerId === null ? providersAt(catalog.serving, origin ?? '') : [providerId];
      for (const id of ids) byProvider.set(id, [...(byProvider.get(id) ?? []), pause]);
    }
    return byProvider;
  }
}

function providersAt({ providers }: ServingCatalog, origin: string): readonly string[] {
  return [...providers.values()].filter(({ baseUrl }) => new URL(baseUrl).origin === origin).map(({ id }) => id);
}
