-- Items of saved responses, by which later requests refer to them (item_reference): which provider keeps which, and whose it is.
-- Posted and forgotten with their response.
CREATE TABLE saved_items (
  organization_id uuid NOT NULL,
  -- The provider's own id.
  item_id text NOT NULL,
  -- The payer; null: the organization is not billed.
  wallet_id uuid,
  provider text NOT NULL,
  response_id text NOT NULL,
  execution_id uuid NOT NULL,
  -- Of the whole response; null where it is not known, never 0.
  output_tokens bigint CHECK (output_tokens >= 0),
  created_at timestamptz NOT NULL,
  PRIMARY KEY (organization_id, item_id)
);
CREATE INDEX saved_items_created_at ON saved_items (created_at);
