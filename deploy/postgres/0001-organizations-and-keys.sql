-- Who may call and who pays: organizations, teams, users, memberships, wallets, inference keys (DESIGN 5).

CREATE TABLE organizations (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  slug text NOT NULL UNIQUE,
  display_name text NOT NULL,
  -- prepaid: every request needs a bounded price and a hold; none: not billed.
  billing text NOT NULL CHECK (billing IN ('prepaid', 'none')),
  -- Name of the routing policy; null while auto routing is off.
  auto_routing_policy text,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE teams (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  slug text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (organization_id, slug),
  -- Lets other tables require that a team belongs to their organization.
  UNIQUE (organization_id, id)
);

CREATE TABLE users (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  email text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

-- A user's role in an organization (team_id null) or in one of its teams.
CREATE TABLE memberships (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  team_id uuid,
  user_id uuid NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
  created_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (organization_id, team_id) REFERENCES teams (organization_id, id)
);
CREATE UNIQUE INDEX memberships_organization ON memberships (organization_id, user_id) WHERE team_id IS NULL;
CREATE UNIQUE INDEX memberships_team ON memberships (team_id, user_id) WHERE team_id IS NOT NULL;
CREATE INDEX memberships_user ON memberships (user_id);

-- Prepaid credit, in pico-dollars. balance is everything deposited and not yet charged; leased is the part that gateway
-- processes hold (the sum of leases.outstanding). What is free is balance - leased, and it can never be below zero:
-- that constraint is the promise that a wallet is never overspent.
CREATE TABLE wallets (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  -- null: the organization's wallet; otherwise the user's own.
  user_id uuid REFERENCES users,
  balance numeric(38, 0) NOT NULL DEFAULT 0,
  leased numeric(38, 0) NOT NULL DEFAULT 0 CHECK (leased >= 0),
  frozen boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT wallets_never_overspent CHECK (balance - leased >= 0)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX wallets_organization ON wallets (organization_id) WHERE user_id IS NULL;
CREATE UNIQUE INDEX wallets_user ON wallets (organization_id, user_id) WHERE user_id IS NOT NULL;

CREATE TABLE api_keys (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  team_id uuid,
  user_id uuid REFERENCES users,
  -- Who pays: null is the organization's wallet, otherwise this one (a user's own).
  wallet_id uuid REFERENCES wallets,
  name text NOT NULL,
  -- HMAC-SHA-256 of the whole credential; the credential itself is nowhere.
  key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  -- The first characters, to recognize a key by.
  key_prefix text NOT NULL,
  -- True for keys that a configuration file owns: it finds them again by organization and name.
  from_configuration boolean NOT NULL DEFAULT false,
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  FOREIGN KEY (organization_id, team_id) REFERENCES teams (organization_id, id)
);
CREATE UNIQUE INDEX api_keys_name ON api_keys (organization_id, name) WHERE revoked_at IS NULL;

-- Ceilings on use. One row a ceiling; the scope is the narrowest of key, user, team that is set, else the organization.
CREATE TABLE usage_limits (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations,
  team_id uuid,
  user_id uuid REFERENCES users,
  api_key_id uuid REFERENCES api_keys,
  kind text NOT NULL CHECK (kind IN ('requests_per_minute', 'tokens_per_minute', 'concurrent_requests', 'budget')),
  time_window text CHECK (time_window IN ('hour', 'day', 'week', 'month')),
  -- Requests or tokens; pico-dollars for a budget.
  amount numeric(38, 0) NOT NULL CHECK (amount >= 0),
  CHECK ((kind = 'budget') = (time_window IS NOT NULL)),
  FOREIGN KEY (organization_id, team_id) REFERENCES teams (organization_id, id)
);
CREATE INDEX usage_limits_organization ON usage_limits (organization_id);
