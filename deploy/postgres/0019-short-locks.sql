-- Who borrows hears soon that somebody else has the wallet or limit locked, and asks again: a call that waits takes one of its process's few connections.
ALTER FUNCTION take_lease(bigint, uuid, numeric, numeric) SET lock_timeout = '200ms';
ALTER FUNCTION return_lease(bigint, uuid, numeric) SET lock_timeout = '200ms';
ALTER FUNCTION take_limit_lease(bigint, uuid, numeric, numeric, text, numeric, timestamptz) SET lock_timeout = '200ms';
ALTER FUNCTION give_back_limit_lease(bigint, uuid, text, numeric) SET lock_timeout = '200ms';

-- Ends a posting that does not add up (src/storage/postgres/ledger/post-executions.ts), before it is committed.
CREATE FUNCTION check_posting(
  of_epoch bigint, charged numeric, owed numeric, wallets_charged bigint, wallets_updated bigint, leases_updated bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF charged <> owed THEN
    RAISE EXCEPTION 'epoch % charges a wallet that has no account in the ledger', of_epoch;
  END IF;
  IF wallets_updated <> wallets_charged OR leases_updated <> wallets_charged THEN
    RAISE EXCEPTION 'epoch % charges % wallets but holds leases of %', of_epoch, wallets_charged, leases_updated;
  END IF;
END $$;
