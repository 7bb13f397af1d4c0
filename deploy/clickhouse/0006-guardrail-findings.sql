-- What guardrails found in a request and its reply, in names and counts (spec 7.7): one entry of the arrays for each rule and entity. Never a value.

ALTER TABLE request_facts
    ADD COLUMN IF NOT EXISTS screened_stages Array(LowCardinality(String)) COMMENT 'Stages that guardrails ran on',
    ADD COLUMN IF NOT EXISTS screened_missed Array(LowCardinality(String)) COMMENT 'Why something was not scanned',
    ADD COLUMN IF NOT EXISTS finding_stages Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS finding_policies Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS finding_rules Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS finding_entities Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS finding_actions Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS finding_counts Array(UInt32);
