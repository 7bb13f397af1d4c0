-- The tokens that jobs obtains for providers which take no key that lasts (`token:` of a provider).

CREATE TABLE provider_tokens (
  provider_id     text PRIMARY KEY REFERENCES providers (id) ON DELETE CASCADE,
  -- Sealed with MASTER_KEY; null: none was obtained yet.
  token_sealed    bytea,
  obtained_at     timestamptz,
  expires_at      timestamptz,
  -- Digests of the settings and the sealed secret that the token was obtained with, and that were tried last: a token
  -- of other settings is not used.
  made_from       text,
  tried_from      text,
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Until then one process is at it.
  claimed_until   timestamptz,
  -- In a row.
  failures        integer NOT NULL DEFAULT 0,
  -- What the last failure was.
  failure         text,
  CHECK ((token_sealed IS NULL) = (expires_at IS NULL) AND (token_sealed IS NULL) = (obtained_at IS NULL)
    AND (token_sealed IS NULL) = (made_from IS NULL))
);
