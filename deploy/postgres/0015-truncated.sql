-- The reply ended at its limit on output tokens (spec 2.5, `truncated`). null: it did not, or nobody looked, as in records of versions before this one.
ALTER TABLE generations ADD COLUMN truncated boolean;
