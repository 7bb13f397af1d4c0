-- Settings of the jobs process's user, with which a fact is in the cluster, and stays there, once its insert has succeeded. Give them to that user:
-- ALTER USER ... SETTINGS PROFILE 'tollgate'.

CREATE SETTINGS PROFILE IF NOT EXISTS tollgate ON CLUSTER '{cluster}' SETTINGS
    -- The insert returns when every shard has its rows, not when they are queued for it.
    distributed_foreground_insert = 1,
    -- ... and when most replicas of the shard have them: the loss of one loses nothing.
    insert_quorum = 'auto',
    insert_quorum_parallel = 1,
    insert_deduplicate = 1,
    -- A report of one organization asks its shard alone.
    optimize_skip_unused_shards = 1,
    -- A replica that lags misses rows, so it is not asked.
    max_replica_delay_for_distributed_queries = 30;
