-- Whether somebody has ever acted is asked at the first sign-in to an account that has nothing else: without it the
-- whole log was read, while the account's row was locked. Changes wait while it is made, some seconds for ten million.

CREATE INDEX audit_log_actor ON audit_log (actor_user_id) WHERE actor_user_id IS NOT NULL;
