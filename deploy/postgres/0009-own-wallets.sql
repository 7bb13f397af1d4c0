-- A key that does not charge its organization's wallet charges its own user's, and nobody else's: so it was meant, so it is kept (DESIGN 5).

-- One that came to charge somebody else's wallet ends here.
UPDATE api_keys k SET wallet_id = NULL, revoked_at = coalesce(revoked_at, now())
 WHERE wallet_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = k.wallet_id AND w.organization_id = k.organization_id AND w.user_id = k.user_id);

-- Names are one payer's: nobody takes one from the organization, or learns what its keys are called.
DROP INDEX api_keys_name;
CREATE UNIQUE INDEX api_keys_name ON api_keys (organization_id, name) WHERE revoked_at IS NULL AND wallet_id IS NULL;
CREATE UNIQUE INDEX api_keys_own_name ON api_keys (wallet_id, name) WHERE revoked_at IS NULL AND wallet_id IS NOT NULL;

ALTER TABLE wallets ADD CONSTRAINT wallets_of_users UNIQUE (organization_id, user_id, id);
ALTER TABLE api_keys
  ADD CONSTRAINT api_keys_wallet_is_its_users_own CHECK (wallet_id IS NULL OR user_id IS NOT NULL),
  ADD CONSTRAINT api_keys_wallet_is_its_users FOREIGN KEY (organization_id, user_id, wallet_id) REFERENCES wallets (organization_id, user_id, id);
