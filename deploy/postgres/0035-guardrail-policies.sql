-- Guardrail policies in versions, and who is screened by which (spec 7.7).

CREATE TABLE guardrail_policies (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  -- null: the platform's own, which any organization can be screened by.
  organization_id uuid REFERENCES organizations,
  name text NOT NULL
);
CREATE UNIQUE INDEX guardrail_policies_of_platform ON guardrail_policies (name) WHERE organization_id IS NULL;
CREATE UNIQUE INDEX guardrail_policies_of_organization ON guardrail_policies (organization_id, name)
  WHERE organization_id IS NOT NULL;

-- Records name the version, so it must say the same for ever.
CREATE TABLE guardrail_policy_versions (
  policy_id uuid NOT NULL REFERENCES guardrail_policies,
  version integer NOT NULL CHECK (version > 0),
  -- As it was written, without secrets. null: the policy was removed.
  definition jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (policy_id, version)
);
CREATE FUNCTION refuse_guardrail_version_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'versions of guardrail policies are append-only: % refused', TG_OP;
END $$;
CREATE TRIGGER guardrail_policy_versions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON guardrail_policy_versions
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_guardrail_version_change();

-- What external detectors are called with. Encrypted under MASTER_KEY (secret-box.ts).
CREATE TABLE guardrail_secrets (
  policy_id uuid NOT NULL REFERENCES guardrail_policies,
  detector text NOT NULL,
  secret_sealed bytea NOT NULL,
  PRIMARY KEY (policy_id, detector)
);

-- Of an organization as a whole where team and key are null.
CREATE TABLE guardrail_assignments (
  organization_id uuid NOT NULL REFERENCES organizations,
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  api_key_id uuid REFERENCES api_keys,
  policy_id uuid NOT NULL REFERENCES guardrail_policies,
  -- What the platform set, an organization cannot take away.
  set_by text NOT NULL CHECK (set_by IN ('platform', 'organization')),
  CHECK (team_id IS NULL OR api_key_id IS NULL)
);
CREATE INDEX guardrail_assignments_of_organization ON guardrail_assignments (organization_id);

CREATE TABLE guardrail_settings (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  -- What happens while the policies cannot be loaded.
  on_unavailable text NOT NULL CHECK (on_unavailable IN ('refuse', 'pass')),
  -- Teams and keys that the organization's own policies leave out.
  excepted_team_ids uuid[] NOT NULL DEFAULT '{}',
  excepted_key_ids uuid[] NOT NULL DEFAULT '{}'
);
