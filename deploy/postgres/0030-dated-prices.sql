-- The prices of a deployment behind its first one, in their order: the last that is valid counts.
ALTER TABLE served_by ADD COLUMN further_prices bigint[] NOT NULL DEFAULT '{}';
