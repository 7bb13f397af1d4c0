-- A month that no fact has come to for a day becomes one part. Reading it with FINAL then merges nothing, and reports are mostly about past months.

ALTER TABLE request_facts
    MODIFY SETTING min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;
