// The catalog that a gateway process serves from: a snapshot in memory, replaced as a whole when the catalog changes.

import type { Catalog } from '../domain/models/catalog.ts';
import { prepareCatalog, type ServingCatalog } from '../generation/catalog/serving-catalog.ts';
import { loadCatalog } from '../storage/postgres/catalog/catalog-store.ts';
import type { Postgres } from '../storage/postgres/pool.ts';

export class HeldCatalog {
  present: Catalog;
  serving: ServingCatalog;
  private readonly postgres: Postgres;
  private readonly masterKey: Buffer;

  static async load(postgres: Postgres, masterKey: Buffer): Promise<HeldCatalog> {
    return new HeldCatalog(postgres, masterKey, await loadCatalog(postgres, masterKey));
  }

  private constructor(postgres: Postgres, masterKey: Buffer, catalog: Catalog) {
    this.postgres = postgres;
    this.masterKey = masterKey;
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
  }

  /** Loads the catalog again. Requests under way keep their snapshot. */
  async reload(): Promise<void> {
    const catalog = await loadCatalog(this.postgres, this.masterKey);
    // Two reloads may end in reverse order.
    if (catalog.version < this.present.version) return;
    this.present = catalog;
    this.serving = prepareCatalog(catalog);
  }
}
