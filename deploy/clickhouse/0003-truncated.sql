-- Whether the provider stopped because the output limit was reached (finish reason `length`, `max_tokens`, `max_output_tokens`): what the routing
-- report counts as truncated (spec 2.5). False also where nobody looked: records of versions before this one do not say.

ALTER TABLE request_facts
    ADD COLUMN IF NOT EXISTS truncated Bool DEFAULT false COMMENT 'The reply ended at its output limit';
