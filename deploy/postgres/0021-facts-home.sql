-- The one ClickHouse that has the facts of all machines (src/storage/postgres/ledger/facts-home.ts).
CREATE TABLE facts_home (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  clickhouse_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('embedded', 'server')),
  -- Whose jobs process registered it.
  machine text NOT NULL,
  registered_at timestamptz NOT NULL DEFAULT now()
);
