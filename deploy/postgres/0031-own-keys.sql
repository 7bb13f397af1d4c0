-- Organizations' own provider keys: what the platform opens and the organization chooses, the keys, and what their
-- providers charge.

CREATE TABLE byok_settings (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  -- Set by the platform.
  enabled boolean NOT NULL DEFAULT false,
  -- null: every kind.
  kinds text[],
  custom_base_url boolean NOT NULL DEFAULT false,
  -- null: no fee.
  fee_kind text CHECK (fee_kind IN ('percent', 'per_request')),
  fee_basis_points integer CHECK (fee_basis_points BETWEEN 0 AND 10000),
  fee_per_request numeric(38, 0) CHECK (fee_per_request >= 0),
  credentials_max integer NOT NULL DEFAULT 50 CHECK (credentials_max BETWEEN 0 AND 1000),
  -- Set by the organization.
  fallback boolean NOT NULL DEFAULT false,
  classifier text NOT NULL DEFAULT 'service' CHECK (classifier IN ('service', 'own')),
  budgets text NOT NULL DEFAULT 'fee' CHECK (budgets IN ('fee', 'all')),
  CHECK ((fee_kind IS NOT DISTINCT FROM 'percent') = (fee_basis_points IS NOT NULL)),
  CHECK ((fee_kind IS NOT DISTINCT FROM 'per_request') = (fee_per_request IS NOT NULL)),
  CHECK (NOT (custom_base_url AND fee_kind IS NOT DISTINCT FROM 'percent'))
);

CREATE TABLE own_keys (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  kind text NOT NULL,
  name text NOT NULL,
  -- The end of the secret, where it may be shown; and eight digits of its HMAC.
  label text,
  fingerprint text NOT NULL,
  place text NOT NULL CHECK (place IN ('before', 'after')),
  position integer NOT NULL,
  fallback text NOT NULL CHECK (fallback IN ('inherit', 'on', 'off')),
  -- null: every one.
  models text[],
  teams uuid[],
  api_keys uuid[],
  users uuid[],
  settings jsonb NOT NULL DEFAULT '{}',
  base_url text,
  model_map jsonb NOT NULL DEFAULT '{}',
  -- Encrypted, bound to organization, kind, id and generation. null: the key was removed.
  secret_sealed bytea,
  generation integer NOT NULL DEFAULT 1,
  -- The secret before the present one, which is tried where that is refused.
  previous_sealed bytea,
  previous_until timestamptz,
  state text NOT NULL CHECK (state IN ('active', 'unverified', 'cooling_down', 'invalid', 'disabled')),
  state_reason text,
  state_until timestamptz,
  -- Somebody's request found the key refused: jobs ask the provider.
  suspected_at timestamptz,
  checked_at timestamptz,
  verified_at timestamptz,
  last_used_at timestamptz,
  expires_at timestamptz,
  rotated_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  removed_at timestamptz,
  CHECK ((secret_sealed IS NULL) = (removed_at IS NOT NULL))
);
CREATE UNIQUE INDEX own_keys_name ON own_keys (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX own_keys_to_check ON own_keys (checked_at) WHERE removed_at IS NULL AND (state = 'invalid' OR suspected_at IS NOT NULL);

-- What a model costs an organization at its own provider; it rates requests on own keys and nothing else.
CREATE TABLE own_model_prices (
  organization_id uuid NOT NULL REFERENCES organizations,
  model_id text NOT NULL,
  -- In the words of the configuration file.
  price jsonb NOT NULL,
  -- What records name.
  version uuid NOT NULL DEFAULT gen_random_uuid(),
  PRIMARY KEY (organization_id, model_id)
);
