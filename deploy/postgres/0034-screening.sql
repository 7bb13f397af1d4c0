-- What guardrails did at each stage of a request, in names and counts.
ALTER TABLE generations ADD COLUMN screening jsonb;
