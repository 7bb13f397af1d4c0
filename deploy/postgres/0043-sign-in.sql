-- People who sign in by an OpenID provider: who they are there, and which memberships its groups gave them.

CREATE TABLE user_identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX user_identities_user ON user_identities (user_id);

-- What is not here was given by people, and no sign-in takes it away. Without an organization: the platform's administration.
CREATE TABLE sign_in_grants (
  provider text NOT NULL,
  user_id uuid NOT NULL REFERENCES users,
  organization_id uuid REFERENCES organizations,
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (provider, user_id, organization_id, team_id)
);
