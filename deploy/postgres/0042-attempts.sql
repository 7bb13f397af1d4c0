-- The calls of providers for a request, in their order with times, where more than one was called. null: there was one at most.
ALTER TABLE generations ADD COLUMN attempts jsonb;
