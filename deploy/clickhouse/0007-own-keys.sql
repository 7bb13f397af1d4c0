-- The organization's own provider key that served, and what the platform charged for it.

ALTER TABLE request_facts
    ADD COLUMN IF NOT EXISTS credential_id Nullable(UUID) COMMENT 'Own key that served; null: the service''s',
    ADD COLUMN IF NOT EXISTS fee Nullable(Decimal(38, 12)) COMMENT 'What the platform charged for an own key';
