-- What processes borrow under usage limits: budgets and places for open requests in pools, requests and tokens of a minute in cells of a second (DESIGN 4).

-- Public id of the one model that a limit holds for; null: for all together.
ALTER TABLE usage_limits ADD COLUMN model text;

-- One limit for each kind, window and model of a scope; of two that were there the stricter one stays.
DELETE FROM usage_limits l USING usage_limits stricter
 WHERE (stricter.amount, stricter.id) < (l.amount, l.id)
   AND (l.organization_id, l.kind) = (stricter.organization_id, stricter.kind)
   AND (l.team_id, l.user_id, l.api_key_id, l.time_window) IS NOT DISTINCT FROM (stricter.team_id, stricter.user_id, stricter.api_key_id, stricter.time_window);
CREATE UNIQUE INDEX usage_limits_once ON usage_limits (organization_id, team_id, user_id, api_key_id, kind, time_window, model) NULLS NOT DISTINCT;
DROP INDEX usage_limits_organization;
ALTER TABLE usage_limits ADD CONSTRAINT usage_limits_one_scope CHECK (num_nonnulls(team_id, user_id, api_key_id) <= 1);

-- What is lent under a budget in one calendar period, and under concurrent_requests for ever; there the id is the limit's own. Lendable is
-- the limit less used less leased. No foreign key: what was spent is posted whether or not the limit is still there.
CREATE TABLE limit_pools (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  limit_id uuid NOT NULL,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Spent by posted executions.
  used numeric(38, 0) NOT NULL DEFAULT 0 CHECK (used >= 0),
  -- In the hands of processes: the sum of limit_leases.outstanding.
  leased numeric(38, 0) NOT NULL DEFAULT 0 CHECK (leased >= 0),
  -- The highest that the limit was when something was lent: what used and leased together never pass, however often the limit is lowered.
  highest_limit numeric(38, 0) NOT NULL DEFAULT 0,
  UNIQUE (limit_id, period_start)
) WITH (fillfactor = 50);

CREATE TABLE limit_leases (
  epoch bigint NOT NULL REFERENCES process_epochs,
  pool_id uuid NOT NULL REFERENCES limit_pools,
  outstanding numeric(38, 0) NOT NULL CHECK (outstanding >= 0),
  PRIMARY KEY (epoch, pool_id)
) WITH (fillfactor = 50);
CREATE INDEX limit_leases_pool ON limit_leases (pool_id);

-- Requests or tokens of a rate that processes may use or have used, by the last second in which they may: cells[1] belongs to the second first_label.
CREATE TABLE rate_windows (
  limit_id uuid PRIMARY KEY,
  first_label bigint NOT NULL,
  cells bigint[] NOT NULL
) WITH (fillfactor = 50);

-- The part of a window that one process was granted and may still use.
CREATE TABLE rate_holdings (
  epoch bigint NOT NULL REFERENCES process_epochs,
  limit_id uuid NOT NULL,
  first_label bigint NOT NULL,
  cells bigint[] NOT NULL,
  PRIMARY KEY (epoch, limit_id)
) WITH (fillfactor = 50);
CREATE INDEX rate_holdings_limit ON rate_holdings (limit_id);

-- Pools of budgets that an execution was held from, and what it used of each of them; null when none.
ALTER TABLE generations ADD COLUMN budgets uuid[], ADD COLUMN budget_use numeric(38, 0) CHECK (budget_use >= 0);

-- As many cells for the seconds from `wanted_first` on: what is older falls off, what is missing is 0. By slices: a tenth of the time that a
-- query over the seconds took.
CREATE FUNCTION cells_from(first_label bigint, cells bigint[], wanted_first bigint) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  length integer := cardinality(cells);
  later bigint := wanted_first - first_label;
BEGIN
  IF abs(later) >= length THEN
    RETURN array_fill(0::bigint, ARRAY[length]);
  ELSIF later >= 0 THEN
    RETURN cells[later + 1:] || array_fill(0::bigint, ARRAY[later::integer]);
  END IF;
  RETURN array_fill(0::bigint, ARRAY[-later::integer]) || cells[:length + later];
END $$;

-- Lends from a rate. Exact: what is used in any 60 seconds from t on was granted with a label not before floor(t) and was taken before t + 60,
-- when the label still counted, since a label counts up to 60 seconds after itself. `present_free` of an earlier grant goes on under the new label.
-- It looks before it locks: under a saturated limit refusals are most of the calls, and they neither wait nor write.
CREATE FUNCTION take_rate_grant(
  for_epoch bigint, of_limit uuid, wished numeric, minimum numeric, present_grant text, present_free numeric, at timestamptz,
  OUT granted numeric, OUT grant_id text, OUT valid_for_ms double precision, OUT present_moved boolean, OUT available numeric,
  OUT leased_elsewhere numeric, OUT ceiling numeric, OUT retry_after_ms double precision
) LANGUAGE plpgsql AS $$
DECLARE
  counted constant integer := 60;
  ahead_max constant integer := 15;
  -- The cell of the present second.
  here constant integer := counted + 1;
  shared rate_windows%ROWTYPE;
  own rate_holdings%ROWTYPE;
  moment numeric;
  now_second bigint;
  load bigint;
  elsewhere bigint;
  cell bigint;
  ahead integer;
  -- How far the present grant's label lies ahead of now.
  present_ahead bigint;
  moved bigint := 0;
BEGIN
  FOR locking IN 0 .. 1 LOOP
    IF locking = 0 THEN
      SELECT * INTO shared FROM rate_windows WHERE limit_id = of_limit;
      IF NOT FOUND THEN
        INSERT INTO rate_windows (limit_id, first_label, cells) VALUES (of_limit, 0, array_fill(0::bigint, ARRAY[here + ahead_max]))
          ON CONFLICT DO NOTHING;
        CONTINUE;
      END IF;
    ELSE
      SELECT * INTO STRICT shared FROM rate_windows WHERE limit_id = of_limit FOR UPDATE;
    END IF;
    -- Time and limit as they are now that it is our turn.
    moment := extract(epoch FROM coalesce(at, clock_timestamp()));
    now_second := floor(moment);
    SELECT coalesce((SELECT least(amount, 1e18) FROM usage_limits WHERE id = of_limit), 0) INTO ceiling;
    shared.cells := cells_from(shared.first_label, shared.cells, now_second - counted);
    load := 0;
    FOREACH cell IN ARRAY shared.cells LOOP
      load := load + cell;
    END LOOP;
    available := greatest(ceiling - load, 0);
    granted := CASE WHEN available >= wished THEN wished WHEN available >= minimum THEN available ELSE 0 END;
    EXIT WHEN granted = 0;
  END LOOP;
  -- Grants of a dead process age: nothing has to return, so fencing need not wait for one that is being taken.
  PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'take_limit_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
  END IF;
  SELECT * INTO own FROM rate_holdings WHERE epoch = for_epoch AND limit_id = of_limit;
  own.cells := CASE WHEN FOUND THEN cells_from(own.first_label, own.cells, now_second) ELSE array_fill(0::bigint, ARRAY[ahead_max + 1]) END;
  elsewhere := 0;
  FOR ahead IN 0 .. ahead_max LOOP
    elsewhere := elsewhere + shared.cells[here + ahead] - own.cells[ahead + 1];
  END LOOP;
  leased_elsewhere := greatest(elsewhere, 0);
  present_moved := false;
  IF granted = 0 THEN
    grant_id := of_limit;
    -- Each second the oldest label counts no longer.
    FOR later IN 1 .. here + ahead_max LOOP
      load := load - shared.cells[later];
      IF ceiling - load >= greatest(minimum, 1) THEN
        retry_after_ms := (now_second + later - moment) * 1000;
        EXIT;
      END IF;
    END LOOP;
    RETURN;
  END IF;
  -- Near the limit a grant is for now; far from it, for long enough that slow traffic finds it.
  load := load + granted;
  ahead := CASE WHEN 2 * load >= ceiling THEN 1 ELSE 1 + floor((ahead_max - 1) * (ceiling - 2 * load) / ceiling) END;
  present_ahead := nullif(split_part(present_grant, '@', 2), '')::bigint - now_second;
  IF present_ahead BETWEEN -counted AND ahead_max THEN
    present_moved := true;
    moved := least(present_free, shared.cells[here + present_ahead]);
    shared.cells[here + present_ahead] := shared.cells[here + present_ahead] - moved;
    IF present_ahead >= 0 THEN
      own.cells[present_ahead + 1] := greatest(own.cells[present_ahead + 1] - moved, 0);
    END IF;
  END IF;
  shared.cells[here + ahead] := shared.cells[here + ahead] + moved + granted;
  own.cells[ahead + 1] := own.cells[ahead + 1] + moved + granted;
  UPDATE rate_windows SET first_label = now_second - counted, cells = shared.cells WHERE limit_id = of_limit;
  INSERT INTO rate_holdings (epoch, limit_id, first_label, cells) VALUES (for_epoch, of_limit, now_second, own.cells)
    ON CONFLICT (epoch, limit_id) DO UPDATE SET first_label = excluded.first_label, cells = excluded.cells;
  available := available - granted;
  grant_id := of_limit || '@' || now_second + ahead;
  valid_for_ms := (now_second + ahead + 1 - moment) * 1000;
END $$;

-- Lends from the pool of a budget's present period, or of a limit of open requests. It looks before it locks, likewise.
CREATE FUNCTION take_pool_lease(
  for_epoch bigint, of_limit uuid, period_length text, wished numeric, minimum numeric, present_grant text, at timestamptz,
  OUT granted numeric, OUT grant_id text, OUT valid_for_ms double precision, OUT present_moved boolean, OUT available numeric,
  OUT leased_elsewhere numeric, OUT ceiling numeric, OUT retry_after_ms double precision
) LANGUAGE plpgsql AS $$
DECLARE
  pool limit_pools%ROWTYPE;
  starts timestamptz := '-infinity';
  ends timestamptz := 'infinity';
BEGIN
  IF period_length IS NOT NULL THEN
    starts := date_trunc(period_length, coalesce(at, clock_timestamp()), 'UTC');
    ends := (starts AT TIME ZONE 'UTC' + ('1 ' || period_length)::interval) AT TIME ZONE 'UTC';
  END IF;
  FOR locking IN 0 .. 1 LOOP
    IF locking = 0 THEN
      PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL;
    ELSE
      -- Share lock: fencing an epoch waits for leases being taken, and none is taken after it. It comes before the pool's, as in closing an epoch.
      PERFORM FROM process_epochs WHERE epoch = for_epoch AND fenced_at IS NULL FOR SHARE;
    END IF;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'take_limit_lease: epoch % is fenced', for_epoch USING ERRCODE = 'TG001';
    END IF;
    IF locking = 0 THEN
      SELECT * INTO pool FROM limit_pools WHERE limit_id = of_limit AND period_start = starts;
      IF NOT FOUND THEN
        INSERT INTO limit_pools (id, limit_id, period_start, period_end)
          VALUES (CASE WHEN period_length IS NULL THEN of_limit ELSE gen_random_uuid() END, of_limit, starts, ends) ON CONFLICT DO NOTHING;
        CONTINUE;
      END IF;
    ELSE
      SELECT * INTO STRICT pool FROM limit_pools WHERE limit_id = of_limit AND period_start = starts FOR UPDATE;
    END IF;
    -- The limit as it is now that it is our turn.
    SELECT coalesce((SELECT amount FROM usage_limits WHERE id = of_limit), 0) INTO ceiling;
    available := greatest(ceiling - pool.used - pool.leased, 0);
    granted := CASE WHEN available >= wished THEN wished WHEN available >= minimum THEN available ELSE 0 END;
    EXIT WHEN granted = 0;
  END LOOP;
  leased_elsewhere := greatest(pool.leased - coalesce((SELECT outstanding FROM limit_leases WHERE epoch = for_epoch AND pool_id = pool.id), 0), 0);
  grant_id := pool.id;
  present_moved := coalesce(present_grant = grant_id, false);
  IF granted > 0 THEN
    UPDATE limit_pools SET leased = leased + granted, highest_limit = greatest(highest_limit, ceiling) WHERE id = pool.id;
    INSERT INTO limit_leases (epoch, pool_id, outstanding) VALUES (for_epoch, pool.id, granted)
      ON CONFLICT (epoch, pool_id) DO UPDATE SET outstanding = limit_leases.outstanding + excluded.outstanding;
    available := available - granted;
  END IF;
  IF period_length IS NOT NULL THEN
    valid_for_ms := greatest(extract(epoch FROM ends - coalesce(at, clock_timestamp())), 0) * 1000;
    retry_after_ms := CASE WHEN granted = 0 THEN valid_for_ms END;
  END IF;
END $$;

-- Lends what is wished under a limit, else what is lendable if that is at least the minimum, else nothing. `at` is for tests, which replay hours.
CREATE FUNCTION take_limit_lease(
  for_epoch bigint, of_limit uuid, wished numeric, minimum numeric, present_grant text, present_free numeric, at timestamptz DEFAULT NULL,
  OUT granted numeric, OUT grant_id text, OUT valid_for_ms double precision, OUT present_moved boolean, OUT available numeric,
  OUT leased_elsewhere numeric, OUT ceiling numeric, OUT retry_after_ms double precision, OUT gone boolean
) LANGUAGE plpgsql AS $$
DECLARE
  of_kind text;
  period_length text;
BEGIN
  IF wished < 0 OR minimum < 0 OR minimum > wished OR present_free < 0 THEN
    RAISE EXCEPTION 'take_limit_lease: need 0 <= minimum <= amount and 0 <= present, got %, % and %', minimum, wished, present_free;
  END IF;
  SELECT kind, time_window INTO of_kind, period_length FROM usage_limits WHERE id = of_limit;
  gone := NOT FOUND;
  IF gone THEN
    SELECT 0, of_limit, false, 0, 0 INTO granted, grant_id, present_moved, available, leased_elsewhere;
  ELSIF of_kind IN ('budget', 'concurrent_requests') THEN
    SELECT t.* INTO granted, grant_id, valid_for_ms, present_moved, available, leased_elsewhere, ceiling, retry_after_ms
      FROM take_pool_lease(for_epoch, of_limit, period_length, wished, minimum, present_grant, at) t;
  ELSE
    SELECT t.* INTO granted, grant_id, valid_for_ms, present_moved, available, leased_elsewhere, ceiling, retry_after_ms
      FROM take_rate_grant(for_epoch, of_limit, wished, minimum, present_grant, present_free, at) t;
  END IF;
END $$;

-- Hands back what was lent under a grant and not used. Not idempotent, like return_lease; of a rate, what no longer counts is forgotten.
CREATE FUNCTION give_back_limit_lease(from_epoch bigint, of_limit uuid, from_grant text, amount numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  label bigint := nullif(split_part(from_grant, '@', 2), '');
BEGIN
  IF amount < 0 THEN
    RAISE EXCEPTION 'give_back_limit_lease: negative amount %', amount;
  END IF;
  IF label IS NOT NULL THEN
    UPDATE rate_windows SET cells[label - first_label + 1] = greatest(cells[label - first_label + 1] - amount, 0)
     WHERE limit_id = of_limit AND label - first_label BETWEEN 0 AND cardinality(cells) - 1;
    UPDATE rate_holdings SET cells[label - first_label + 1] = greatest(cells[label - first_label + 1] - amount, 0)
     WHERE epoch = from_epoch AND limit_id = of_limit AND label - first_label BETWEEN 0 AND cardinality(cells) - 1;
    RETURN;
  END IF;
  UPDATE limit_pools SET leased = leased - amount WHERE id = from_grant::uuid AND limit_id = of_limit;
  UPDATE limit_leases SET outstanding = outstanding - amount WHERE epoch = from_epoch AND pool_id = from_grant::uuid;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'give_back_limit_lease: epoch % holds nothing of pool %', from_epoch, from_grant;
  END IF;
END $$;
