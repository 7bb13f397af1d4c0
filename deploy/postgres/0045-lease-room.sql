-- Every process hears of room that nobody returned: a wallet with more money, a limit that is higher. Until then requests
-- under it are refused without asking the database (src/generation/admission/remembered-refusal.ts).

CREATE FUNCTION tell_lease_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tollgate_lease_room', NEW.id::text);
  RETURN NULL;
END $$;
CREATE TRIGGER wallets_tell_room AFTER UPDATE OF balance ON wallets
  FOR EACH ROW WHEN (NEW.balance > OLD.balance) EXECUTE FUNCTION tell_lease_room();
CREATE TRIGGER usage_limits_tell_room AFTER UPDATE OF amount ON usage_limits
  FOR EACH ROW WHEN (NEW.amount > OLD.amount) EXECUTE FUNCTION tell_lease_room();
