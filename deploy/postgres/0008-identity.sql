-- Identity as it is administered: access tokens, platform administrators, key rotation, model access, the owner floor, the audit log (DESIGN 5).

ALTER TABLE teams ADD COLUMN display_name text;

-- Which models may be used, by public id; null: all that the scopes above allow.
ALTER TABLE organizations ADD COLUMN allowed_models text[];
ALTER TABLE teams ADD COLUMN allowed_models text[];
ALTER TABLE api_keys ADD COLUMN allowed_models text[];

CREATE INDEX api_keys_organization ON api_keys (organization_id, created_at, id);
CREATE INDEX api_keys_user ON api_keys (organization_id, user_id) WHERE user_id IS NOT NULL;

-- Secrets that rotations replaced, each good until its overlap ends. They stay here after that: a configuration file that still has one
-- must not bring it back.
CREATE TABLE api_key_previous_secrets (
  key_hash bytea PRIMARY KEY CHECK (octet_length(key_hash) = 32),
  api_key_id uuid NOT NULL REFERENCES api_keys,
  valid_until timestamptz NOT NULL
);
CREATE INDEX api_key_previous_secrets_key ON api_key_previous_secrets (api_key_id);

CREATE TABLE platform_administrators (
  user_id uuid PRIMARY KEY REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- What people sign in with. Which organization a token works in is part of the token; whether its user is still a member is asked each time.
CREATE TABLE access_tokens (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id uuid NOT NULL REFERENCES users,
  active_organization_id uuid REFERENCES organizations,
  name text NOT NULL,
  -- HMAC-SHA-256 of the whole credential, as in api_keys.
  token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
  token_prefix text NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX access_tokens_user ON access_tokens (user_id, created_at, id);

-- A team takes its memberships with it.
ALTER TABLE memberships DROP CONSTRAINT memberships_organization_id_team_id_fkey;
ALTER TABLE memberships ADD CONSTRAINT memberships_organization_id_team_id_fkey
  FOREIGN KEY (organization_id, team_id) REFERENCES teams (organization_id, id) ON DELETE CASCADE;

-- The last owner of an organization or team stays (spec 7.8). Owners who leave at the same time take turns at the row of their scope,
-- and each statement of this function sees what the one before it left.
CREATE FUNCTION keep_an_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.team_id IS NULL THEN
    PERFORM FROM organizations WHERE id = OLD.organization_id FOR NO KEY UPDATE;
  ELSE
    PERFORM FROM teams WHERE id = OLD.team_id FOR NO KEY UPDATE;
  END IF;
  -- The scope itself is gone: nothing is left to own.
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  PERFORM FROM memberships WHERE organization_id = OLD.organization_id AND team_id IS NOT DISTINCT FROM OLD.team_id AND role = 'owner';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the last owner of % % stays', CASE WHEN OLD.team_id IS NULL THEN 'organization' ELSE 'team' END, coalesce(OLD.team_id, OLD.organization_id)
      USING ERRCODE = 'TG409';
  END IF;
  RETURN NULL;
END $$;
-- Deferrable for a configuration file, which may name the new owner after the old one.
CREATE CONSTRAINT TRIGGER memberships_owner_stays AFTER DELETE ON memberships
  DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW WHEN (OLD.role = 'owner') EXECUTE FUNCTION keep_an_owner();
CREATE CONSTRAINT TRIGGER memberships_owner_keeps_role AFTER UPDATE ON memberships
  DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW WHEN (OLD.role = 'owner' AND NEW.role <> 'owner') EXECUTE FUNCTION keep_an_owner();

-- Who changed what. No foreign keys: an entry outlives what it is about.
CREATE TABLE audit_log (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- null: about no single organization.
  organization_id uuid,
  actor_kind text NOT NULL CHECK (actor_kind IN ('token', 'cli', 'bootstrap')),
  actor_user_id uuid,
  actor_label text NOT NULL,
  action text NOT NULL,
  target_kind text NOT NULL,
  target_id text NOT NULL,
  before jsonb,
  after jsonb
);
CREATE INDEX audit_log_organization ON audit_log (organization_id, created_at DESC, id DESC);
CREATE INDEX audit_log_created_at ON audit_log (created_at DESC, id DESC);

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is append-only: % refused', TG_OP;
END $$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
