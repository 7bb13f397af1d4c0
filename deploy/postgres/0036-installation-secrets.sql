-- What the installation derived from its first master key (the pepper of credentials, the delegation key), encrypted like
-- every other secret: another master key takes the first one's place without making every credential unknown.
CREATE TABLE installation_secrets (
  name text PRIMARY KEY CHECK (name IN ('pepper', 'delegation_key')),
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
