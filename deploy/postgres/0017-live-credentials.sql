-- How many live credentials there are is counted whenever one is made (refuse-count.ts); those that were revoked, of which there may be any number, are not read for it.
CREATE INDEX api_keys_live ON api_keys (organization_id, user_id) WHERE revoked_at IS NULL;
CREATE INDEX access_tokens_live ON access_tokens (user_id, expires_at) WHERE revoked_at IS NULL;
