-- Webhooks: where an organization is told that a charge is final, and what it is still to be told. And indexes for deposits and requested runs.

CREATE TABLE webhooks (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  url text NOT NULL,
  -- Encrypted under MASTER_KEY (secret-box.ts).
  secret_sealed bytea NOT NULL,
  active boolean NOT NULL,
  -- Since the last success; from the fifth on the webhook rests between attempts.
  failures integer NOT NULL DEFAULT 0,
  paused_until timestamptz,
  last_success_at timestamptz,
  last_error_at timestamptz,
  last_error text,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- One row an execution whose charge became final and that its organization does not know of yet; it goes when it is delivered. No foreign keys: posting
-- must not fail because a webhook is being removed.
CREATE TABLE webhook_deliveries (
  execution_id uuid PRIMARY KEY,
  organization_id uuid NOT NULL,
  settled_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  -- null: dead, given up after its last attempt.
  next_attempt_at timestamptz DEFAULT now(),
  last_error text
) WITH (fillfactor = 70);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (organization_id, next_attempt_at);

-- Deposits by wallet: 'deposit:<wallet>:<reference>'.
CREATE INDEX ledger_transfers_deposits ON ledger_transfers (split_part(reference, ':', 2), id) WHERE kind = 'deposit';

-- Runs that an operator asked for and nobody has begun.
CREATE INDEX job_runs_requested ON job_runs (id) WHERE machine = '';
