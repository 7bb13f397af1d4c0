// Reads an installation's money directly in Postgres: wallets, leases, postings, generations. It writes nothing.

import pg from 'pg';

export interface WalletView {
  readonly balance: bigint;
  readonly leased: bigint;
}

/** Queries cast numbers to text that JavaScript would round. */
export type LedgerRow = Readonly<Record<string, string | number | boolean | null>>;

export interface LedgerView {
  /** The wallet of an organization. */
  wallet(organizationSlug: string): Promise<WalletView>;
  /** The number of admitted generations. */
  generationCount(): Promise<number>;
  query(text: string, values?: readonly unknown[]): Promise<LedgerRow[]>;
  close(): Promise<void>;
}

export function openLedgerView(postgresUrl: string): LedgerView {
  const pool = new pg.Pool({ connectionString: postgresUrl, max: 2 });
  pool.on('error', () => undefined); // The server may stop before the test closes its view.
  const query = async (text: string, values: readonly unknown[] = []): Promise<LedgerRow[]> =>
    (await pool.query<LedgerRow>(text, [...values])).rows;
  return {
    query,
    async wallet(organizationSlug) {
      const [row] = await query(
        `SELECT wallets.balance::text AS balance, wallets.leased::text AS leased
         FROM wallets JOIN organizations ON organizations.id = wallets.organization_id
         WHERE organizations.slug = $1 AND wallets.user_id IS NULL`,
        [organizationSlug],
      );
      if (row === undefined) throw new Error(`organization ${organizationSlug} has no wallet`);
      return { balance: BigInt(String(row.balance)), leased: BigInt(String(row.leased)) };
    },
    async generationCount() {
      const [row] = await query(
        "SELECT count(*)::int AS count FROM generations WHERE outcome IS DISTINCT FROM 'refused'",
      );
      return Number(row?.count);
    },
    async close() {
      await pool.end();
    },
  };
}
