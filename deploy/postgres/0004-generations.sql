-- What was executed: one row an execution, how far each spool segment has been shipped, and what the scheduled jobs did.

-- The generation record (spec 2.1) and what reconciliation needs. No foreign keys to configuration: a row is history, and a check
-- per execution would cost more than the row. Money is in pico-dollars. A missing count is null, never 0.
CREATE TABLE generations (
  id uuid PRIMARY KEY,
  epoch bigint NOT NULL,
  organization_id uuid NOT NULL,
  team_id uuid,
  user_id uuid,
  api_key_id uuid NOT NULL,
  wallet_id uuid,
  api text NOT NULL,
  requested_model text NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  provider_model text NOT NULL,
  price_version text,
  streamed boolean NOT NULL,
  client_request_id text,
  tags text[] NOT NULL,
  authorized_amount numeric(38, 0) CHECK (authorized_amount >= 0),
  request_bytes bigint NOT NULL,
  admitted_at timestamptz NOT NULL,
  -- null while only the admission is known; everything below is written with it, by the terminal record or by reconciliation.
  ended_at timestamptz,
  outcome text,
  status integer,
  error_code text,
  input_tokens bigint CHECK (input_tokens >= 0),
  cached_input_tokens bigint CHECK (cached_input_tokens >= 0),
  cache_write_tokens bigint CHECK (cache_write_tokens >= 0),
  output_tokens bigint CHECK (output_tokens >= 0),
  reasoning_tokens bigint CHECK (reasoning_tokens >= 0),
  images bigint CHECK (images >= 0),
  usage_source text CHECK (usage_source IN ('reported', 'counted')),
  billing_status text NOT NULL CHECK (billing_status IN ('final', 'pending', 'not_billed', 'cancelled')),
  rated_cost numeric(38, 0) CHECK (rated_cost >= 0),
  charge numeric(38, 0) CHECK (charge >= 0),
  suspense numeric(38, 0) NOT NULL DEFAULT 0 CHECK (suspense >= 0),
  latency_ms double precision,
  ttft_ms double precision,
  response_bytes bigint,
  -- Open means pending, with nothing charged.
  CHECK (ended_at IS NOT NULL OR (billing_status = 'pending' AND charge IS NULL AND outcome IS NULL)),
  CHECK (ended_at IS NULL OR outcome IS NOT NULL)
);
CREATE INDEX generations_client_request_id ON generations (organization_id, client_request_id) WHERE client_request_id IS NOT NULL;
CREATE INDEX generations_pending ON generations (epoch) WHERE billing_status = 'pending';

-- How far a segment of an epoch's spool has come: offsets in bytes from its start.
CREATE TABLE spool_cursors (
  epoch bigint NOT NULL,
  segment integer NOT NULL,
  posted_offset bigint NOT NULL DEFAULT 0,
  facts_offset bigint NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (epoch, segment),
  CHECK (facts_offset <= posted_offset)
) WITH (fillfactor = 50);

-- Every run of a scheduled job. Inserting the row claims the run: once in the cluster for a name and a due time.
CREATE TABLE job_runs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  due_at timestamptz NOT NULL,
  machine text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  error text,
  details jsonb,
  UNIQUE (name, due_at)
);
