-- Calls that lend and take back have numbers, so that a process whose call was never answered can ask what became of it
-- (src/generation/admission/lease-calls.ts). With a last argument more, each function does what it did, once for a
-- number; without it, it is that of earlier versions, which cannot ask. The number of a call about a rate is ignored:
-- what such a call leaves behind ages out with the minute.

-- Of the last numbered call of this process about this wallet or pool: its number, and what it was granted. 0: it took
-- back. null: it was not done and never will be, or there was none.
ALTER TABLE leases ADD COLUMN last_call bigint NOT NULL DEFAULT 0, ADD COLUMN last_granted numeric(38, 0);
ALTER TABLE limit_leases ADD COLUMN last_call bigint NOT NULL DEFAULT 0, ADD COLUMN last_granted numeric(38, 0);

CREATE FUNCTION take_lease(
  for_epoch bigint, from_wallet uuid, wished numeric, minimum numeric, call bigint,
  OUT granted numeric, OUT available numeric, OUT leased_elsewhere numeric, OUT frozen boolean
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  SELECT taken.* INTO granted, available, leased_elsewhere, frozen
    FROM take_lease(for_epoch, from_wallet, wished, minimum) taken;
  IF granted = 0 OR call IS NULL THEN
    RETURN;
  END IF;
  UPDATE leases SET last_call = call, last_granted = granted
   WHERE epoch = for_epoch AND wallet_id = from_wallet AND last_call < call;
  IF NOT FOUND THEN
    -- Its process has been told that it was not done.
    PERFORM return_lease(for_epoch, from_wallet, granted);
    available := available + granted;
    granted := 0;
  END IF;
END $$;

CREATE FUNCTION return_lease(from_epoch bigint, to_wallet uuid, amount numeric, call bigint) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  -- The wallet before the lease, as everywhere.
  PERFORM FROM wallets WHERE id = to_wallet FOR NO KEY UPDATE;
  PERFORM FROM leases WHERE epoch = from_epoch AND wallet_id = to_wallet AND last_call >= call;
  IF FOUND THEN
    RETURN;
  END IF;
  UPDATE leases SET last_call = call, last_granted = 0
   WHERE epoch = from_epoch AND wallet_id = to_wallet AND call IS NOT NULL;
  PERFORM return_lease(from_epoch, to_wallet, amount);
END $$;

-- What became of the last call, of either kind, whose answer was lost: it was done, or it never will be, also should it
-- still be on its way. Asked again it answers the same.
CREATE FUNCTION settle_lease(
  for_epoch bigint, of_wallet uuid, call bigint, OUT is_done boolean, OUT granted numeric
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  PERFORM FROM wallets WHERE id = of_wallet FOR NO KEY UPDATE;
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'settle_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT last_granted INTO granted FROM leases
   WHERE epoch = for_epoch AND wallet_id = of_wallet AND last_call = call;
  is_done := granted IS NOT NULL;
  granted := coalesce(granted, 0);
  IF NOT is_done THEN
    INSERT INTO leases (epoch, wallet_id, outstanding, last_call) VALUES (for_epoch, of_wallet, 0, call)
      ON CONFLICT (epoch, wallet_id) DO UPDATE SET last_call = excluded.last_call, last_granted = NULL
      WHERE leases.last_call < excluded.last_call;
  END IF;
END $$;

-- The same for budgets and open requests.
CREATE FUNCTION take_limit_lease(
  for_epoch bigint, of_limit uuid, wished numeric, minimum numeric, present_grant text, present_free numeric,
  at timestamptz, call bigint,
  OUT granted numeric, OUT grant_id text, OUT valid_for_ms double precision, OUT present_moved boolean,
  OUT available numeric, OUT leased_elsewhere numeric, OUT ceiling numeric, OUT retry_after_ms double precision,
  OUT gone boolean
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  SELECT taken.*
    INTO granted, grant_id, valid_for_ms, present_moved, available, leased_elsewhere, ceiling, retry_after_ms, gone
    FROM take_limit_lease(for_epoch, of_limit, wished, minimum, present_grant, present_free, at) taken;
  IF granted = 0 OR call IS NULL OR strpos(grant_id, '@') > 0 THEN
    RETURN;
  END IF;
  UPDATE limit_leases SET last_call = call, last_granted = granted
   WHERE epoch = for_epoch AND pool_id = grant_id::uuid AND last_call < call;
  IF NOT FOUND THEN
    PERFORM give_back_limit_lease(for_epoch, of_limit, grant_id, granted);
    available := available + granted;
    granted := 0;
  END IF;
END $$;

CREATE FUNCTION give_back_limit_lease(
  from_epoch bigint, of_limit uuid, from_grant text, amount numeric, call bigint
) RETURNS void LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  IF strpos(from_grant, '@') = 0 THEN
    -- The pool before the lease, as everywhere.
    PERFORM FROM limit_pools WHERE id = from_grant::uuid AND limit_id = of_limit FOR NO KEY UPDATE;
    PERFORM FROM limit_leases WHERE epoch = from_epoch AND pool_id = from_grant::uuid AND last_call >= call;
    IF FOUND THEN
      RETURN;
    END IF;
    UPDATE limit_leases SET last_call = call, last_granted = 0
     WHERE epoch = from_epoch AND pool_id = from_grant::uuid AND call IS NOT NULL;
  END IF;
  PERFORM give_back_limit_lease(from_epoch, of_limit, from_grant, amount);
END $$;

-- What was granted has the id `grant_id`.
CREATE FUNCTION settle_limit_lease(
  for_epoch bigint, of_limit uuid, call bigint, at timestamptz,
  OUT is_done boolean, OUT granted numeric, OUT grant_id text
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
  present text;
  pools uuid[];
BEGIN
  -- Makes the pool that a call still on its way would lend from.
  SELECT taken.grant_id INTO present FROM take_limit_lease(for_epoch, of_limit, 0, 0, NULL, 0, at) taken;
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'settle_limit_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT array_agg(id ORDER BY id) INTO pools FROM limit_pools
   WHERE limit_id = of_limit
     AND (id::text = present OR id IN (SELECT pool_id FROM limit_leases WHERE epoch = for_epoch));
  PERFORM FROM limit_pools WHERE id = ANY (pools) ORDER BY id FOR NO KEY UPDATE;
  SELECT last_granted, pool_id INTO granted, grant_id FROM limit_leases
   WHERE epoch = for_epoch AND pool_id = ANY (pools) AND last_call = call AND last_granted IS NOT NULL;
  is_done := FOUND;
  IF NOT is_done THEN
    granted := 0;
    grant_id := present;
    INSERT INTO limit_leases (epoch, pool_id, outstanding, last_call)
      SELECT for_epoch, pool, 0, call FROM unnest(pools) AS pool
      ON CONFLICT (epoch, pool_id) DO UPDATE SET last_call = excluded.last_call, last_granted = NULL
      WHERE limit_leases.last_call < excluded.last_call;
  END IF;
END $$;
