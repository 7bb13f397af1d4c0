-- Webhooks tell of own provider keys as well: of what is not an execution, the message is here in whole. execution_id is then the message's own id.

ALTER TABLE webhook_deliveries
  ADD COLUMN event text NOT NULL DEFAULT 'generation.settled',
  -- JSON; null where the generation is the message.
  ADD COLUMN data text;
