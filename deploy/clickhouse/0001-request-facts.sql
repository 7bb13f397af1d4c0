-- One wide row per execution: what reports read (DESIGN 8). The ledger in Postgres is the truth about money; this table must equal it.
--
-- A fact is inserted again after a crash, and a corrected one (pending, then final) has a higher version: the row with the highest version
-- counts. Merging drops the others only in time, so every reader says FINAL or groups by id.
-- An id has one admitted_at for ever, so its versions always meet in the same partition.
-- Columns of the route decision (spec 2.4) are added by their own migration; inserts name their columns.

CREATE TABLE IF NOT EXISTS request_facts
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

    INDEX admitted_at_range admitted_at TYPE minmax
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(admitted_at)
ORDER BY (organization_id, admitted_at, id)
-- Deduplicates a repeated insert by its token; only an optimisation, the engine above is what makes facts exact.
SETTINGS non_replicated_deduplication_window = 1000;
