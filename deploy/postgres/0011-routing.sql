-- Auto routing (spec 4.11, DESIGN 7): versions of policies stay as they were, turns keep their route, requests keep why they were served by what.

-- Records name the version they were decided by, so it must say the same for ever.
CREATE FUNCTION refuse_routing_policy_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'versions of routing policies are append-only: % refused', TG_OP;
END $$;
CREATE TRIGGER routing_policies_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON routing_policies
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_routing_policy_change();

-- One row a human turn. Inserting it claims the turn: whoever inserted it asks the classifier, everybody else waits for the decision or takes
-- it over when it does not come. Hashes alone: nothing here tells what was said, or who said it.
CREATE TABLE routing_turns (
  -- Who pays, the session and the first human message.
  conversation text NOT NULL,
  turn text NOT NULL,
  organization_id uuid NOT NULL,
  -- How many human messages the conversation had with this turn: what orders its turns.
  human_messages integer NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  -- null: not decided yet. Written once.
  decision jsonb,
  -- Of the turn's largest request so far that told its usage; what the size of the next one is estimated from.
  input_tokens bigint CHECK (input_tokens >= 0),
  request_bytes bigint CHECK (request_bytes >= 0),
  PRIMARY KEY (conversation, turn)
) WITH (fillfactor = 70);
CREATE INDEX routing_turns_claimed_at ON routing_turns (claimed_at);

-- The routing decision record (spec 2.4), baseline cost included once the execution has ended; null: the client named its model.
ALTER TABLE generations ADD COLUMN model_route jsonb;
