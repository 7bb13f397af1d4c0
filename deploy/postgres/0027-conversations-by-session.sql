-- A conversation is recognized by its session alone (spec 4.11), so how many messages a client still sends says nothing
-- of the order of its turns. human_messages is written and read only by processes of the version before.
ALTER TABLE routing_turns
  ALTER COLUMN human_messages SET DEFAULT 0,
  -- Whether the turn's first request offered tools: an agent's side requests offer none.
  ADD COLUMN offers_tools boolean NOT NULL DEFAULT false,
  -- Hash of the beginning of its system prompt.
  ADD COLUMN instructions text NOT NULL DEFAULT '';
