-- Saved responses (spec 4.2): which provider keeps which response, and whose it is. The response itself is only at the provider.

-- Posted with the generation row of the execution that made it. No foreign keys, as there. Counts are what a continuation
-- (previous_response_id) would carry into its own input; null where they are not known, never 0.
CREATE TABLE saved_responses (
  organization_id uuid NOT NULL,
  -- The provider's own id.
  response_id text NOT NULL,
  -- The payer; null: the organization is not billed.
  wallet_id uuid,
  provider text NOT NULL,
  -- The public id that served.
  model text NOT NULL,
  provider_model text NOT NULL,
  execution_id uuid NOT NULL,
  input_tokens bigint CHECK (input_tokens >= 0),
  output_tokens bigint CHECK (output_tokens >= 0),
  created_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, response_id)
);
CREATE INDEX saved_responses_created_at ON saved_responses (created_at);
