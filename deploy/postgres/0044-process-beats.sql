-- What each process counted in the last seconds and how it stands, written by it every five seconds and kept for ten
-- minutes. Nothing depends on it: it is gone after a crash of the database, and no standby has it.

CREATE UNLOGGED TABLE process_beats (
  -- A multiple of five seconds, by the clock of the process; what it counted is of the five seconds before.
  at         timestamptz NOT NULL,
  machine    text NOT NULL,
  kind       text NOT NULL,
  pid        integer NOT NULL,
  started_at timestamptz NOT NULL,
  written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  version    text NOT NULL,
  -- null: it writes no records.
  epoch      bigint,
  -- By name (src/domain/processes/process-sample.ts); what did not happen is left out.
  counts     jsonb NOT NULL,
  gauges     jsonb NOT NULL,
  -- The process has ended by itself.
  is_last    boolean NOT NULL,
  PRIMARY KEY (at, machine, kind, pid, started_at)
);
