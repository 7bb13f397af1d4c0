-- Cells of sealed days are by status, too, so that the routing report of successes, of errors or of one status reads cells and not facts. Cells that were
-- made before belong to another definition: they are not read, and are made anew. In the embedded engine only.

ALTER TABLE sealed_series
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;

ALTER TABLE sealed_groups
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;

ALTER TABLE sealed_facets
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;

ALTER TABLE sealed_turns
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;

ALTER TABLE sealed_rejections
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;

ALTER TABLE sealed_corrections
    ADD COLUMN IF NOT EXISTS of_error UInt8 COMMENT 'Whether reports count these requests as errors' AFTER seal,
    ADD COLUMN IF NOT EXISTS of_status UInt16 COMMENT 'HTTP status; 0: none' AFTER of_error;
