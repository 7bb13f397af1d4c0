-- What was wrong with 0046 for lost calls, which Postgres may carry out late.
--
-- A budget has a pool for each period, and a lost call may arrive in a later period than that in which its process
-- asked what became of it: a call that was found not done is over in every pool of its limit. Calls with a number of
-- one process about one limit run one after the other, whichever pools they meet.
-- Beside older versions: the functions that they call take and answer what they did. A call that is under way while
-- this is applied may be carried out though it is found not done; what it took returns when its epoch is closed.
--
-- The functions that ask have the name of what they do, `recover_…`; those of 0046, `settle_…`, are for gateways that
-- know no other, and may go with the next version.

CREATE FUNCTION lock_limit_calls(of_epoch bigint, of_limit uuid) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended(of_epoch || ' ' || of_limit, 0))
$$;

-- This call, or a later one, is done, or was found not done. It sees what was committed when it is called: under READ
-- COMMITTED a statement after the lock sees all that calls before did.
CREATE FUNCTION is_limit_call_over(of_epoch bigint, of_limit uuid, call bigint) RETURNS boolean LANGUAGE sql AS $$
  SELECT EXISTS (SELECT FROM limit_leases JOIN limit_pools ON limit_pools.id = limit_leases.pool_id
                  WHERE epoch = of_epoch AND limit_id = of_limit AND last_call >= call)
$$;

CREATE OR REPLACE FUNCTION take_limit_lease(
  for_epoch bigint, of_limit uuid, wished numeric, minimum numeric, present_grant text, present_free numeric,
  at timestamptz, call bigint,
  OUT granted numeric, OUT grant_id text, OUT valid_for_ms double precision, OUT present_moved boolean,
  OUT available numeric, OUT leased_elsewhere numeric, OUT ceiling numeric, OUT retry_after_ms double precision,
  OUT gone boolean
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  -- What a lost call about a rate leaves behind ages out with the minute.
  IF EXISTS (SELECT FROM usage_limits WHERE id = of_limit AND kind NOT IN ('budget', 'concurrent_requests')) THEN
    call := NULL;
  END IF;
  IF call IS NOT NULL THEN
    -- Before any row is locked, so that who waits for it holds nothing that others wait for.
    PERFORM lock_limit_calls(for_epoch, of_limit);
    IF is_limit_call_over(for_epoch, of_limit, call) THEN
      wished := 0;
      minimum := 0;
    END IF;
  END IF;
  SELECT taken.*
    INTO granted, grant_id, valid_for_ms, present_moved, available, leased_elsewhere, ceiling, retry_after_ms, gone
    FROM take_limit_lease(for_epoch, of_limit, wished, minimum, present_grant, present_free, at) taken;
  IF granted > 0 AND call IS NOT NULL THEN
    UPDATE limit_leases SET last_call = call, last_granted = granted
     WHERE epoch = for_epoch AND pool_id = grant_id::uuid;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION give_back_limit_lease(
  from_epoch bigint, of_limit uuid, from_grant text, amount numeric, call bigint
) RETURNS void LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  IF call IS NULL OR strpos(from_grant, '@') > 0 THEN
    PERFORM give_back_limit_lease(from_epoch, of_limit, from_grant, amount);
    RETURN;
  END IF;
  PERFORM lock_limit_calls(from_epoch, of_limit);
  IF is_limit_call_over(from_epoch, of_limit, call) THEN
    RETURN;
  END IF;
  PERFORM give_back_limit_lease(from_epoch, of_limit, from_grant, amount);
  UPDATE limit_leases SET last_call = call, last_granted = 0
   WHERE epoch = from_epoch AND pool_id = from_grant::uuid;
END $$;

-- What became of the last call of this process about this budget or limit of open requests, whose answer was lost: it was
-- done, or it never will be, also should it still be on its way.
CREATE FUNCTION recover_limit_lease(
  for_epoch bigint, of_limit uuid, call bigint, at timestamptz,
  OUT is_done boolean, OUT granted numeric, OUT grant_id text
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
  present text;
BEGIN
  PERFORM lock_limit_calls(for_epoch, of_limit);
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'recover_limit_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT last_granted, pool_id INTO granted, grant_id
    FROM limit_leases JOIN limit_pools ON limit_pools.id = limit_leases.pool_id
   WHERE epoch = for_epoch AND limit_id = of_limit AND last_call = call AND last_granted IS NOT NULL;
  is_done := FOUND;
  IF is_done OR is_limit_call_over(for_epoch, of_limit, call) THEN
    RETURN;
  END IF;
  -- It is noted where something is leased, for a pool of which nothing is leased may be forgotten.
  UPDATE limit_leases SET last_call = call, last_granted = NULL
   WHERE epoch = for_epoch AND pool_id = (
     SELECT pool_id FROM limit_leases JOIN limit_pools ON limit_pools.id = limit_leases.pool_id
      WHERE epoch = for_epoch AND limit_id = of_limit ORDER BY outstanding > 0 DESC, period_end DESC LIMIT 1);
  IF FOUND THEN
    RETURN;
  END IF;
  -- The process has no lease. Taking nothing makes the present pool; there is none of a limit that is gone, of which
  -- nothing can be taken either.
  SELECT taken.grant_id INTO present FROM take_limit_lease(for_epoch, of_limit, 0, 0, NULL, 0, at) taken;
  INSERT INTO limit_leases (epoch, pool_id, outstanding, last_call)
    SELECT for_epoch, id, 0, call FROM limit_pools WHERE id = present::uuid FOR KEY SHARE;
END $$;

-- The same for a wallet.
CREATE FUNCTION recover_lease(
  for_epoch bigint, of_wallet uuid, call bigint, OUT is_done boolean, OUT granted numeric
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  PERFORM FROM wallets WHERE id = of_wallet FOR NO KEY UPDATE;
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'recover_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT last_granted INTO granted FROM leases
   WHERE epoch = for_epoch AND wallet_id = of_wallet AND last_call = call;
  is_done := granted IS NOT NULL;
  IF NOT is_done THEN
    INSERT INTO leases (epoch, wallet_id, outstanding, last_call) VALUES (for_epoch, of_wallet, 0, call)
      ON CONFLICT (epoch, wallet_id) DO UPDATE SET last_call = excluded.last_call, last_granted = NULL
      WHERE leases.last_call < excluded.last_call;
  END IF;
END $$;

-- A return of a fenced epoch changes nothing: closing the epoch returns all but the holds of what is still open, and
-- does so perhaps before a return that waits for the wallet. Looked at once the wallet is locked, as closing locks it.
CREATE OR REPLACE FUNCTION return_lease(from_epoch bigint, to_wallet uuid, amount numeric, call bigint) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
  -- The wallet before the lease, as everywhere.
  PERFORM FROM wallets WHERE id = to_wallet FOR NO KEY UPDATE;
  PERFORM FROM process_epochs WHERE epoch = from_epoch AND fenced_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM FROM leases WHERE epoch = from_epoch AND wallet_id = to_wallet AND last_call >= call;
  IF FOUND THEN
    RETURN;
  END IF;
  UPDATE leases SET last_call = call, last_granted = 0
   WHERE epoch = from_epoch AND wallet_id = to_wallet AND call IS NOT NULL;
  PERFORM return_lease(from_epoch, to_wallet, amount);
END $$;
