-- How long gateways wait for a provider, in milliseconds, where the operator has said so: connectMs, firstByteMs, idleMs, totalMs.
ALTER TABLE providers ADD COLUMN timeouts jsonb;
