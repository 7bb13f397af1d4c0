-- The facts of deploy/clickhouse (0001 to 0007, and 0011) for a replicated, sharded cluster: the same columns, keys and engine, each execution on one shard.
--
-- All of an organization lies on one shard, so the versions of an execution meet there, FINAL is right shard by shard, and a report of one organization
-- asks one shard. Macros: {cluster}, {shard} and {replica}; `internal_replication` must be true for every shard.

CREATE TABLE IF NOT EXISTS request_facts_local ON CLUSTER '{cluster}'
(
    id UUID,
    version UInt32 COMMENT 'Grows with every correction of the execution',
    organization_id UUID,
    team_id Nullable(UUID),
    user_id Nullable(UUID),
    api_key_id UUID,
    wallet_id Nullable(UUID) COMMENT 'Who pays; null when not billed',

    api LowCardinality(String),
    requested_model LowCardinality(String) COMMENT 'As the client wrote it',
    model LowCardinality(String) COMMENT 'The public id that served',
    provider LowCardinality(String),
    provider_model LowCardinality(String),
    price_version LowCardinality(Nullable(String)),
    streamed Bool,

    client_request_id Nullable(String),
    tags Array(LowCardinality(String)),

    admitted_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ended_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    latency_ms Nullable(UInt32),
    ttft_ms Nullable(UInt32),
    request_bytes UInt64,
    response_bytes UInt64,

    outcome LowCardinality(String),
    status Nullable(UInt16) COMMENT 'HTTP status the client got',
    error_code LowCardinality(Nullable(String)),

    -- A count that is not known is null, never 0 (spec 2.1).
    tokens_prompt Nullable(UInt64),
    tokens_cached Nullable(UInt64),
    tokens_cache_write Nullable(UInt64),
    tokens_completion Nullable(UInt64),
    tokens_reasoning Nullable(UInt64),
    images Nullable(UInt32),
    usage_source LowCardinality(Nullable(String)),

    -- US dollars, exact to the pico-dollar.
    billing_status LowCardinality(String),
    authorized_amount Nullable(Decimal(38, 12)),
    rated_cost Nullable(Decimal(38, 12)),
    total_cost Nullable(Decimal(38, 12)),
    suspense Decimal(38, 12),

    -- 0002
    routed Bool DEFAULT false COMMENT 'The client named the virtual model',
    route_tier LowCardinality(String) DEFAULT '' COMMENT 'Tier that served; empty where the model is in none',
    route_tier_rank Nullable(UInt8) COMMENT '0 is the cheapest',
    route_classified_tier LowCardinality(String) DEFAULT '',
    route_reason LowCardinality(String) DEFAULT '',
    route_confidence Nullable(Float64),
    route_cached Bool DEFAULT false COMMENT 'Classification of an earlier request of the same human turn',
    route_task LowCardinality(String) DEFAULT '',
    route_picked_by LowCardinality(String) DEFAULT '' COMMENT 'strength, native_api; empty: tier order',
    route_escalated Bool DEFAULT false COMMENT 'Above the tier that the classifier chose',
    route_correction Bool DEFAULT false,
    route_correction_probability Nullable(Float64) COMMENT 'null: not asked, so the turn is no follow-up',
    route_previous_model LowCardinality(String) DEFAULT '',
    route_previous_tier LowCardinality(String) DEFAULT '',
    route_sticky Bool DEFAULT false,
    route_safety LowCardinality(String) DEFAULT '',
    route_baseline_model LowCardinality(String) DEFAULT '',
    route_baseline_cost Nullable(Decimal(38, 12)) COMMENT 'US dollars; only where both prices are real',
    route_policy LowCardinality(String) DEFAULT '',
    route_policy_version UInt32 DEFAULT 0,
    route_session String DEFAULT '' COMMENT 'Hash that names a conversation',
    route_turn String DEFAULT '' COMMENT 'Names a human turn within it',
    -- One element a passed-over candidate, the three arrays side by side.
    route_rejected_models Array(LowCardinality(String)),
    route_rejected_tiers Array(LowCardinality(String)),
    route_rejected_reasons Array(LowCardinality(String)),
    route_distribution Map(LowCardinality(String), Float64) COMMENT 'Probability by tier, as the classifier told',
    -- Only of the request that made the call.
    classifier_model LowCardinality(String) DEFAULT '',
    classifier_input_tokens Nullable(UInt64),
    classifier_cost Nullable(Decimal(38, 12)) COMMENT 'The operator''s; charged to nobody',
    classifier_latency_ms Nullable(UInt32),

    -- 0003
    truncated Bool DEFAULT false COMMENT 'The reply ended at its output limit',
    -- 0005
    guardrail LowCardinality(Nullable(String)) COMMENT 'Rule that acted; null: none',
    -- 0006
    screened_stages Array(LowCardinality(String)) COMMENT 'Stages that guardrails ran on',
    screened_missed Array(LowCardinality(String)) COMMENT 'Why something was not scanned',
    finding_stages Array(LowCardinality(String)),
    finding_policies Array(LowCardinality(String)),
    finding_rules Array(LowCardinality(String)),
    finding_entities Array(LowCardinality(String)),
    finding_actions Array(LowCardinality(String)),
    finding_counts Array(UInt32),
    -- 0007
    credential_id Nullable(UUID) COMMENT 'Own key that served; null: the service''s',
    fee Nullable(Decimal(38, 12)) COMMENT 'What the platform charged for an own key',

    INDEX admitted_at_range admitted_at TYPE minmax
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/request_facts', '{replica}', version)
PARTITION BY toYYYYMM(admitted_at)
ORDER BY (organization_id, admitted_at, id)
-- A batch is tried again for as long as ClickHouse is away: a week of batches is remembered by their tokens. Only an optimisation, here too.
SETTINGS replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 604800,
    min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
    vertical_merge_algorithm_min_rows_to_activate = 1;
-- 0011, where the table was there before
ALTER TABLE request_facts_local ON CLUSTER '{cluster}' MODIFY SETTING vertical_merge_algorithm_min_rows_to_activate = 1;

CREATE TABLE IF NOT EXISTS request_facts ON CLUSTER '{cluster}' AS request_facts_local
ENGINE = Distributed('{cluster}', currentDatabase(), request_facts_local, sipHash64(organization_id));
