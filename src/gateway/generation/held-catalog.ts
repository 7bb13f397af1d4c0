// The catalog that a gateway process serves from: a snapshot in memory, replaced as a whole when the catalog changes or
// when one of its dated prices becomes valid.

import type { Catalog } from '../../domain/models/catalog.ts';
import { catalogAt } from '../../domain/models/dated-prices.ts';
import { prepareCatalog, type ServingCatalog } from '../../generation/catalog/serving-catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { Reloads } from '../../platform/reloads.ts';

/** How often a token that should have been renewed is looked for, in case its notification was lost. */
const TOKEN_WAIT_MS = 10_000;
/** A change of the machine's clock is noticed after this time at the latest. */
const WAIT_MS_MAX = 60_000;

interface Parts {
  /** `present`: the catalog that the loaded one replaces; null: there is none yet. */
  readonly load: (present: Catalog | null) => Promise<Catalog>;
  readonly clock: Clock;
  readonly log: Log;
}

export class HeldCatalog {
  present: Catalog;
  serving: ServingCatalog;
  private readonly parts: Parts;
  private readonly reloads: Reloads;
  /** The catalog as it is stored, with all dated prices. */
  private stored: Catalog;
  /** When the present prices were chosen, and until when they are valid. */
  private chosenAtMs: number;
  private untilMs: number;
  private timer: NodeJS.Timeout | null = null;
  private tokensFromMs = 0;

  static async load(parts: Parts): Promise<HeldCatalog> {
    return new HeldCatalog(parts, await parts.load(null));
  }

  private constructor(parts: Parts, stored: Catalog) {
    this.parts = parts;
    this.stored = stored;
    this.reloads = new Reloads(
      () => this.reload(),
      (fault) => parts.log.warn({ err: fault }, 'the catalog could not be loaded anew; the present one stays'),
    );
    this.chosenAtMs = parts.clock.nowMs();
    const { catalog, untilMs } = catalogAt(stored, this.chosenAtMs);
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
    this.untilMs = untilMs;
    this.awaitNextPrice();
  }

  /** Loads the catalog again when a token should have been renewed. Called from the coarse clock. */
  lookForTokens(): void {
    const nowMs = this.parts.clock.nowMs();
    if (nowMs < this.tokensFromMs) return;
    const isOverdue = [...this.serving.providers.values()].some(
      ({ token }) => token !== undefined && nowMs >= token.overdueFromMs,
    );
    if (!isOverdue) return;
    this.tokensFromMs = nowMs + TOKEN_WAIT_MS;
    this.mayHaveChanged();
  }

  /** Loads the catalog again. Requests under way keep their snapshot. */
  mayHaveChanged(): void {
    this.reloads.due();
  }

  close(): void {
    this.reloads.close();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private async reload(): Promise<void> {
    const stored = await this.parts.load(this.stored);
    // After a failover a standby that is behind may have answered.
    if (stored.version < this.stored.version) return;
    this.stored = stored;
    this.takePrices();
  }

  private takePrices(): void {
    this.chosenAtMs = this.parts.clock.nowMs();
    const { catalog, untilMs } = catalogAt(this.stored, this.chosenAtMs);
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
    this.untilMs = untilMs;
    this.awaitNextPrice();
  }

  private awaitNextPrice(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    // The catalog has no dated price.
    if (this.present === this.stored) return;
    const waitMs = Math.min(WAIT_MS_MAX, Math.max(1, this.untilMs - this.parts.clock.nowMs()));
    this.timer = setTimeout(() => {
      const nowMs = this.parts.clock.nowMs();
      if (nowMs >= this.untilMs || nowMs < this.chosenAtMs) this.takePrices();
      else this.awaitNextPrice();
    }, waitMs);
    this.timer.unref();
  }
}
