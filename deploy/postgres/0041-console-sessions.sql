-- Sessions of the console and the one-time links that open them are access tokens of other kinds: hashed, revoked and looked up alike.

ALTER TABLE access_tokens ADD COLUMN kind text NOT NULL DEFAULT 'token' CHECK (kind IN ('token', 'session', 'link'));
-- null: opened by ADMIN_TOKEN or by the command line, which stand for no person.
ALTER TABLE access_tokens ALTER COLUMN user_id DROP NOT NULL;
ALTER TABLE access_tokens ADD CONSTRAINT access_tokens_have_a_user CHECK (user_id IS NOT NULL OR kind <> 'token');
-- A session's expires_at is moved on while it is used, up to here.
ALTER TABLE access_tokens ADD COLUMN expires_latest timestamptz;
-- The access token that opened the session, which ends with it.
ALTER TABLE access_tokens ADD COLUMN opened_by uuid REFERENCES access_tokens;
CREATE INDEX access_tokens_opened_by ON access_tokens (opened_by) WHERE opened_by IS NOT NULL;
-- The hash of the ADMIN_TOKEN that opened the session: it ends when the setting changes.
ALTER TABLE access_tokens ADD COLUMN bootstrap_hash bytea;
