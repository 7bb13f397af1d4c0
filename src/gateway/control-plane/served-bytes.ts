// Counts the served bytes of uploaded files by organization, and adds the counts to the database now and then, so that
// a download does not wait for a row. A killed process loses what it has counted since the last time.

import { recordServed, type ServedCount } from '../../storage/postgres/media/media-usage.ts';
import type { PostgresClient } from '../../storage/postgres/pool.ts';

export class ServedBytes {
  private readonly postgres: PostgresClient;
  private counts = new Map<string, ServedCount>();

  constructor(postgres: PostgresClient) {
    this.postgres = postgres;
  }

  count(organizationId: string, bytes: number): void {
    const present = this.counts.get(organizationId);
    this.counts.set(organizationId, {
      downloads: (present?.downloads ?? 0) + 1,
      bytes: (present?.bytes ?? 0) + bytes,
    });
  }

  /** Writes the counts to Postgres. Rejects if that fails; then the next call tries again. */
  async flush(): Promise<void> {
    const { counts } = this;
    if (counts.size === 0) return;
    this.counts = new Map();
    try {
      await recordServed(this.postgres, counts);
    } catch (fault) {
      for (const [organizationId, { downloads, bytes }] of counts) {
        const since = this.counts.get(organizationId) ?? { downloads: 0, bytes: 0 };
        this.counts.set(organizationId, { downloads: since.downloads + downloads, bytes: since.bytes + bytes });
      }
      throw fault;
    }
  }
}
