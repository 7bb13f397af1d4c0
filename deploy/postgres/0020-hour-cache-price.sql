-- Writes to a provider's cache that lives for an hour cost more than those of five minutes.
ALTER TABLE prices ADD COLUMN cache_write_1h numeric(38, 0) CHECK (cache_write_1h >= 0);
