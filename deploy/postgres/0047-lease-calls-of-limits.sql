-- A budget has a pool for each period, and a call whose answer was lost may be carried out in a later one than that in
-- which its process asked what became of it: what that was told holds for every pool of the limit. Calls with a number
-- of one process about one limit are carried out one after the other, whichever pools they meet.
-- Beside older versions: the three functions take and answer what they did.

CREATE FUNCTION lock_limit_calls(of_epoch bigint, of_limit uuid) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended(of_epoch || ' ' || of_limit, 0))
$$;

-- It was done, or its process has been told that it was not done.
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
  IF granted > 0 AND call IS NOT NULL AND strpos(grant_id, '@') = 0 THEN
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

CREATE OR REPLACE FUNCTION settle_limit_lease(
  for_epoch bigint, of_limit uuid, call bigint, at timestamptz,
  OUT is_done boolean, OUT granted numeric, OUT grant_id text
) LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
  present text;
BEGIN
  PERFORM lock_limit_calls(for_epoch, of_limit);
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'settle_limit_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT last_granted, pool_id INTO granted, grant_id
    FROM limit_leases JOIN limit_pools ON limit_pools.id = limit_leases.pool_id
   WHERE epoch = for_epoch AND limit_id = of_limit AND last_call = call AND last_granted IS NOT NULL;
  is_done := FOUND;
  IF NOT is_done THEN
    -- Taking nothing makes the present pool, for the process may have no lease of any. There is none of a limit that is
    -- gone, of which nothing is lent either.
    SELECT taken.grant_id INTO present FROM take_limit_lease(for_epoch, of_limit, 0, 0, NULL, 0, at) taken;
    granted := 0;
    grant_id := present;
    INSERT INTO limit_leases (epoch, pool_id, outstanding, last_call)
      SELECT for_epoch, id, 0, call FROM limit_pools WHERE id::text = present FOR KEY SHARE
      ON CONFLICT (epoch, pool_id) DO UPDATE SET last_call = excluded.last_call, last_granted = NULL
      WHERE limit_leases.last_call < excluded.last_call;
  END IF;
END $$;
