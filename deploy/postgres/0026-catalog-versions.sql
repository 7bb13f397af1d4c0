-- Providers and models have versions, so that two administrators do not overwrite each other's change, and can be removed.

-- The version of the catalog in which it changed last: it grows with every change, also where one is removed and made again.
ALTER TABLE providers ADD COLUMN version bigint NOT NULL DEFAULT 0;
ALTER TABLE models ADD COLUMN version bigint NOT NULL DEFAULT 0;

-- A price stays when its model or provider is removed: records name it.
ALTER TABLE prices DROP CONSTRAINT prices_model_id_fkey, DROP CONSTRAINT prices_provider_id_fkey;

-- A version without a definition says that the policy was removed: one of the same name that comes later has the next version.
ALTER TABLE routing_policies ALTER COLUMN definition DROP NOT NULL;
