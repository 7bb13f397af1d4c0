-- Providers, models, aliases, prices and routing policies: what gateways load into memory.

-- Grows with every change that gateways must follow.
CREATE TABLE catalog_version (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  version bigint NOT NULL
);
INSERT INTO catalog_version (version) VALUES (0);

CREATE TABLE providers (
  id text PRIMARY KEY,
  base_url text NOT NULL,
  -- AES-256-GCM under MASTER_KEY, bound to the provider's id; never in clear.
  api_key_sealed bytea NOT NULL,
  auth text NOT NULL CHECK (auth IN ('bearer', 'x-api-key')),
  on_disconnect text NOT NULL CHECK (on_disconnect IN ('cancel', 'drain'))
);

CREATE TABLE models (
  id text PRIMARY KEY,
  display_name text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('text', 'image', 'evaluation')),
  context_length bigint CHECK (context_length > 0),
  max_output_tokens bigint CHECK (max_output_tokens > 0),
  max_completion_tokens_cap bigint CHECK (max_completion_tokens_cap > 0),
  attachment_tokens_max bigint CHECK (attachment_tokens_max >= 0),
  tokenizer text NOT NULL,
  active boolean NOT NULL DEFAULT true,
  -- Order of first appearance: listings keep it.
  position bigint GENERATED ALWAYS AS IDENTITY,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE model_aliases (
  alias text PRIMARY KEY,
  model_id text NOT NULL REFERENCES models,
  position integer NOT NULL
);

-- A price never changes: another price is another version, and execution records name the one they were rated at.
-- Pico-dollars per token, and per image. null: the provider has no such price.
CREATE TABLE prices (
  version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model_id text NOT NULL REFERENCES models,
  provider_id text NOT NULL REFERENCES providers,
  provider_model text NOT NULL,
  input numeric(38, 0) CHECK (input >= 0),
  cached_input numeric(38, 0) CHECK (cached_input >= 0),
  cache_write numeric(38, 0) CHECK (cache_write >= 0),
  output numeric(38, 0) CHECK (output >= 0),
  image numeric(38, 0) CHECK (image >= 0),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Who serves a model, first to last.
CREATE TABLE served_by (
  model_id text NOT NULL REFERENCES models,
  position integer NOT NULL,
  provider_id text NOT NULL REFERENCES providers,
  provider_model text NOT NULL,
  apis text[] NOT NULL,
  price_version bigint REFERENCES prices,
  PRIMARY KEY (model_id, position)
);

-- Every change makes a new version; records carry it (DESIGN 7).
CREATE TABLE routing_policies (
  name text NOT NULL,
  version integer NOT NULL,
  definition jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (name, version)
);
