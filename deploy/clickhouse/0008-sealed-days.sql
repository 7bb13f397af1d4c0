-- Sealed days: what the routing report (spec 2.5) counts of one whole day in UTC, kept once the day is over, so that a report need not read its facts
-- again. In the embedded engine only; a cluster's tables are read as they are.
--
-- A day is sealed by the jobs process (src/storage/clickhouse/sealed-days.ts) and opened again, here and on disk, before a fact of it is inserted:
-- so these rows always equal the facts. The columns are those of the statements in src/storage/clickhouse/reports, and checked against them by a test.
--
-- Cells lie in parts of 512 rows, not 8,192: a report of one day of one organization reads no more, where the states of quantiles are long.

CREATE TABLE IF NOT EXISTS sealed_days
(
    day Date,
    number UInt64 COMMENT 'Grows with every row; the highest of a day counts',
    is_sealed Bool,
    seal UUID COMMENT 'Marks the cells of this seal; cells of no seal that counts are left over',
    organizations Array(UUID) COMMENT 'Those that have cells of their own',
    definition String COMMENT 'Hash of the statements that made the cells: other ones make them anew'
)
ENGINE = ReplacingMergeTree(number)
ORDER BY day
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_series
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    is_routed UInt8,
    quarter UInt32 COMMENT 'Start of a quarter of an hour, in epoch seconds: no zone divides it',
    tier LowCardinality(String),
    state_requests UInt64,
    state_spend Decimal(38, 12),
    state_baseline_spend Decimal(38, 12),
    state_baseline_cost Decimal(38, 12)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_groups
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    tier LowCardinality(String),
    rank UInt8,
    task LowCardinality(String),
    served LowCardinality(String),
    latest DateTime64(3, 'UTC'),
    state_requests UInt64,
    state_spend Decimal(38, 12),
    state_baseline_spend Decimal(38, 12),
    state_baseline_cost Decimal(38, 12),
    state_tokens UInt64,
    state_baseline_requests UInt64,
    state_errors UInt64,
    state_truncated UInt64,
    state_cached UInt64,
    state_escalated UInt64,
    state_fallbacks UInt64,
    state_task_applied UInt64,
    state_latency AggregateFunction(quantilesExactIf(0.4999999999, 0.9499999999), UInt32, UInt8),
    state_latency_known UInt64,
    state_ttft AggregateFunction(quantilesExactIf(0.4999999999, 0.9499999999), UInt32, UInt8),
    state_ttft_known UInt64,
    state_confidence_sum Float64,
    state_confidence_known UInt64
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_facets
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    reason LowCardinality(String),
    picked LowCardinality(String),
    policy LowCardinality(String),
    policy_version UInt32,
    classifier LowCardinality(String),
    state_requests UInt64,
    state_confidence_buckets Array(UInt64),
    state_first_at DateTime64(3, 'UTC'),
    state_last_at DateTime64(3, 'UTC'),
    state_classifier_calls UInt64,
    state_classifier_tokens UInt64,
    state_classifier_cost Decimal(38, 12),
    state_classifier_priced UInt64,
    state_classifier_unpriced UInt64,
    state_classifier_latency AggregateFunction(quantilesExactWeightedIf(0.5, 0.95), UInt32, UInt8, UInt8),
    state_classifier_latency_known UInt64
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_turns
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    turn UInt64 COMMENT 'Hash of a human turn, whose requests may lie on several days',
    previous_model LowCardinality(String),
    previous_tier LowCardinality(String),
    follow_up UInt8,
    correction UInt8,
    escalated UInt8,
    remembered UInt64,
    sticky UInt64
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_rejections
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    passed_over Tuple(String, String, String) COMMENT 'Model, tier, reason',
    rejections UInt64
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS sealed_corrections
(
    organization_id UUID COMMENT 'All zeros: every organization',
    day Date,
    seal UUID,
    turn UInt64,
    first Tuple(DateTime64(3, 'UTC'), UUID) COMMENT 'When the first of its requests was admitted, and which'
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (organization_id, day, seal)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1;
