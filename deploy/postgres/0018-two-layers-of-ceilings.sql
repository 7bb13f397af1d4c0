-- What the platform sets binds, and an organization may only tighten it: each ceiling says who set it, and those of both hold (DESIGN 4, 5).

-- What is there may have been set by the operator, so that it is the platform's.
ALTER TABLE usage_limits ADD COLUMN set_by text NOT NULL DEFAULT 'platform' CHECK (set_by IN ('platform', 'organization'));
DROP INDEX usage_limits_once;
CREATE UNIQUE INDEX usage_limits_once ON usage_limits (organization_id, team_id, user_id, api_key_id, kind, time_window, model, set_by) NULLS NOT DISTINCT;

-- The models that both lists have, in the order of the first; null: every model.
CREATE FUNCTION common_models(models text[], others text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN others IS NULL THEN models
              WHEN models IS NULL THEN others
              ELSE ARRAY(SELECT id FROM unnest(models) WITH ORDINALITY AS listed (id, position) WHERE id = ANY (others) ORDER BY position)
         END
$$;

-- allowed_models stays what holds, and is what everybody reads; each of the two lists is written by whose it is.
ALTER TABLE organizations RENAME COLUMN allowed_models TO platform_allowed_models;
ALTER TABLE organizations ADD COLUMN organization_allowed_models text[];
ALTER TABLE organizations
  ADD COLUMN allowed_models text[] GENERATED ALWAYS AS (common_models(platform_allowed_models, organization_allowed_models)) STORED;
ALTER TABLE teams RENAME COLUMN allowed_models TO platform_allowed_models;
ALTER TABLE teams ADD COLUMN organization_allowed_models text[];
ALTER TABLE teams
  ADD COLUMN allowed_models text[] GENERATED ALWAYS AS (common_models(platform_allowed_models, organization_allowed_models)) STORED;
ALTER TABLE api_keys RENAME COLUMN allowed_models TO platform_allowed_models;
ALTER TABLE api_keys ADD COLUMN organization_allowed_models text[];
ALTER TABLE api_keys
  ADD COLUMN allowed_models text[] GENERATED ALWAYS AS (common_models(platform_allowed_models, organization_allowed_models)) STORED;
