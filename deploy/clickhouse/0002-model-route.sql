-- Why auto-routed requests were served by what (spec 2.4): what the routing report (spec 2.5) counts. Rows of requests that named their model have
-- the empty string, null or 0 here; `routed` tells them apart.

ALTER TABLE request_facts
    ADD COLUMN IF NOT EXISTS routed Bool DEFAULT false COMMENT 'The client named the virtual model',
    ADD COLUMN IF NOT EXISTS route_tier LowCardinality(String) DEFAULT '' COMMENT 'Tier that served; empty where the model is in none',
    ADD COLUMN IF NOT EXISTS route_tier_rank Nullable(UInt8) COMMENT '0 is the cheapest',
    ADD COLUMN IF NOT EXISTS route_classified_tier LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_reason LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_confidence Nullable(Float64),
    ADD COLUMN IF NOT EXISTS route_cached Bool DEFAULT false COMMENT 'Classification of an earlier request of the same human turn',
    ADD COLUMN IF NOT EXISTS route_task LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_picked_by LowCardinality(String) DEFAULT '' COMMENT 'strength, native_api; empty: tier order',
    ADD COLUMN IF NOT EXISTS route_escalated Bool DEFAULT false COMMENT 'Above the tier that the classifier chose',
    ADD COLUMN IF NOT EXISTS route_correction Bool DEFAULT false,
    ADD COLUMN IF NOT EXISTS route_correction_probability Nullable(Float64) COMMENT 'null: not asked, so the turn is no follow-up',
    ADD COLUMN IF NOT EXISTS route_previous_model LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_previous_tier LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_sticky Bool DEFAULT false,
    ADD COLUMN IF NOT EXISTS route_safety LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_baseline_model LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_baseline_cost Nullable(Decimal(38, 12)) COMMENT 'US dollars; only where both prices are real',
    ADD COLUMN IF NOT EXISTS route_policy LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS route_policy_version UInt32 DEFAULT 0,
    ADD COLUMN IF NOT EXISTS route_session String DEFAULT '' COMMENT 'Hash that names a conversation',
    ADD COLUMN IF NOT EXISTS route_turn String DEFAULT '' COMMENT 'Names a human turn within it',
    -- One element a passed-over candidate, the three arrays side by side.
    ADD COLUMN IF NOT EXISTS route_rejected_models Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS route_rejected_tiers Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS route_rejected_reasons Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS route_distribution Map(LowCardinality(String), Float64) COMMENT 'Probability by tier, as the classifier told',
    -- Only of the request that made the call.
    ADD COLUMN IF NOT EXISTS classifier_model LowCardinality(String) DEFAULT '',
    ADD COLUMN IF NOT EXISTS classifier_input_tokens Nullable(UInt64),
    ADD COLUMN IF NOT EXISTS classifier_cost Nullable(Decimal(38, 12)) COMMENT 'The operator''s; charged to nobody',
    ADD COLUMN IF NOT EXISTS classifier_latency_ms Nullable(UInt32);
