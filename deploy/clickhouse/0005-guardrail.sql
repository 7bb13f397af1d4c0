-- Name of the guardrail's rule that acted on the request or its reply (spec 7.7). null: none did.

ALTER TABLE request_facts
    ADD COLUMN IF NOT EXISTS guardrail LowCardinality(Nullable(String)) COMMENT 'Rule that acted; null: none';
