-- Where an own provider key was given for: {origin, auth, authority, proxy} of its provider then
-- (src/domain/models/key-destination.ts). null: a key of a version before, which a gateway binds to where its
-- provider is when it next loads the catalog, or one whose provider is in no catalog yet.
ALTER TABLE own_keys ADD COLUMN given_for jsonb;
