// Checks the ledger's invariants with one query that names each broken one. Reconciliation and tests run it.

import type { PostgresClient } from '../pool.ts';

const BROKEN_INVARIANTS = `
  SELECT 'entries sum to zero' AS invariant, 'all accounts together are ' || sum(amount) AS found
    FROM ledger_entries HAVING sum(amount) <> 0
  UNION ALL
  SELECT 'every transfer sums to zero', 'transfer ' || transfer_id || ' is ' || sum(amount)
    FROM ledger_entries GROUP BY transfer_id HAVING sum(amount) <> 0
  UNION ALL
  SELECT 'entries belong to a transfer and an account', 'transfer ' || e.transfer_id || ', account ' || e.account_id
    FROM ledger_entries e
    LEFT JOIN ledger_transfers t ON t.id = e.transfer_id LEFT JOIN ledger_accounts a ON a.id = e.account_id
   WHERE t.id IS NULL OR a.id IS NULL
  UNION ALL
  SELECT 'balance is what the ledger says',
         'wallet ' || w.id || ' has ' || w.balance || ', ledger ' || coalesce(e.total, 0)
    FROM wallets w LEFT JOIN ledger_accounts a ON a.wallet_id = w.id
    LEFT JOIN (SELECT account_id, sum(amount) AS total FROM ledger_entries GROUP BY account_id) e ON e.account_id = a.id
   WHERE w.balance <> coalesce(e.total, 0)
  UNION ALL
  SELECT 'leased is the sum of leases', 'wallet ' || w.id || ' has ' || w.leased || ', leases ' || coalesce(l.total, 0)
    FROM wallets w
    LEFT JOIN (SELECT wallet_id, sum(outstanding) AS total FROM leases GROUP BY wallet_id) l ON l.wallet_id = w.id
   WHERE w.leased <> coalesce(l.total, 0)
  UNION ALL
  SELECT 'charges of generations are those of the ledger', 'generations ' || g.total || ', ledger ' || r.total
    FROM (SELECT coalesce(sum(charge) FILTER (WHERE wallet_id IS NOT NULL), 0) AS total FROM generations) g,
         (SELECT coalesce(sum(amount), 0) AS total FROM ledger_entries e
            JOIN ledger_accounts a ON a.id = e.account_id AND a.kind = 'revenue'
            JOIN ledger_transfers t ON t.id = e.transfer_id AND t.kind = 'charge') r
   WHERE g.total <> r.total
  UNION ALL
  SELECT 'deposits are balances and charges',
         'deposits ' || -d.total || ', balances ' || w.total || ', charges ' || r.total
    FROM (SELECT coalesce(sum(amount), 0) AS total FROM ledger_entries e
            JOIN ledger_accounts a ON a.id = e.account_id AND a.kind = 'deposits') d,
         (SELECT coalesce(sum(balance), 0) AS total FROM wallets) w,
         (SELECT coalesce(sum(amount), 0) AS total FROM ledger_entries e
            JOIN ledger_accounts a ON a.id = e.account_id AND a.kind = 'revenue'
            JOIN ledger_transfers t ON t.id = e.transfer_id AND t.kind = 'charge') r
   WHERE -d.total <> w.total + r.total
  UNION ALL
  SELECT 'leased under a limit is the sum of its leases',
         'pool ' || p.id || ' has ' || p.leased || ', leases ' || coalesce(l.total, 0)
    FROM limit_pools p
    LEFT JOIN (SELECT pool_id, sum(outstanding) AS total FROM limit_leases GROUP BY pool_id) l ON l.pool_id = p.id
   WHERE p.leased <> coalesce(l.total, 0)
  UNION ALL
  SELECT 'a budget used is what executions used of it',
         'pool ' || p.id || ' has ' || p.used || ', executions ' || coalesce(g.total, 0)
    FROM limit_pools p
    LEFT JOIN (SELECT pool_id, sum(budget_use) AS total FROM generations, unnest(budgets) AS pool_id GROUP BY pool_id) g
      ON g.pool_id = p.id
   WHERE p.used <> coalesce(g.total, 0)
  UNION ALL
  SELECT 'a limit is not overspent',
         'pool ' || id || ' has used ' || used || ' and leased ' || leased || ' of ' || highest_limit
    FROM limit_pools WHERE used + leased > highest_limit`;

/** Empty when all invariants hold. */
export async function findBrokenInvariants(postgres: PostgresClient): Promise<{ invariant: string; found: string }[]> {
  const { rows } = await postgres.query<{ invariant: string; found: string }>(BROKEN_INVARIANTS);
  return rows;
}
