// The catalog that a gateway process serves from: a snapshot in memory, replaced as a whole when the catalog changes,
// and when another of its dated prices is valid.

import type { Catalog } from '../../domain/models/catalog.ts';
import { catalogAt } from '../../domain/models/dated-prices.ts';
import { prepareCatalog, type ServingCatalog } from '../../generation/catalog/serving-catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import { loadCatalog } from '../../storage/postgres/catalog/catalog-store.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';

/** How often a token that should have been renewed is looked for, in case its notification was lost. */
const TOKEN_WAIT_MS = 10_000;
/** A clock that is set forward is noticed as late as that. */
const WAIT_MS_MAX = 60_000;

export class HeldCatalog {
  present: Catalog;
  serving: ServingCatalog;
  private readonly postgres: Postgres;
  private readonly box: SecretBox;
  private readonly clock: Clock;
  /** As it is stored, with all prices. */
  private stored: Catalog;
  private untilMs: number;
  private timer: NodeJS.Timeout | null = null;
  private tokensFromMs = 0;

  static async load(postgres: Postgres, box: SecretBox, clock: Clock): Promise<HeldCatalog> {
    return new HeldCatalog(postgres, box, clock, await loadCatalog(postgres, box));
  }

  private constructor(postgres: Postgres, box: SecretBox, clock: Clock, stored: Catalog) {
    this.postgres = postgres;
    this.box = box;
    this.clock = clock;
    this.stored = stored;
    const { catalog, untilMs } = catalogAt(stored, clock.nowMs());
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
    this.untilMs = untilMs;
    this.awaitNextPrice();
  }

  /** Called from the coarse clock. */
  async lookForTokens(): Promise<void> {
    const nowMs = this.clock.nowMs();
    if (nowMs < this.tokensFromMs) return;
    const isOverdue = [...this.serving.providers.values()].some(
      ({ token }) => token !== undefined && nowMs >= token.overdueFromMs,
    );
    if (!isOverdue) return;
    this.tokensFromMs = nowMs + TOKEN_WAIT_MS;
    await this.reload();
  }

  /** Loads the catalog again. Requests under way keep their snapshot. */
  async reload(): Promise<void> {
    const stored = await loadCatalog(this.postgres, this.box);
    // Two reloads may end in reverse order.
    if (stored.version < this.stored.version) return;
    this.stored = stored;
    this.takePrices();
  }

  private takePrices(): void {
    const { catalog, untilMs } = catalogAt(this.stored, this.clock.nowMs());
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
    this.untilMs = untilMs;
    this.awaitNextPrice();
  }

  private awaitNextPrice(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.untilMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.min(WAIT_MS_MAX, Math.max(1, this.untilMs - this.clock.nowMs()));
    this.timer = setTimeout(() => {
      if (this.clock.nowMs() >= this.untilMs) this.takePrices();
      else this.awaitNextPrice();
    }, waitMs);
    this.timer.unref();
  }
}
