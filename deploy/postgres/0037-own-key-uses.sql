-- Which own provider key of the organization served a generation, what became of others before, and what the platform
-- charged for it.
ALTER TABLE generations ADD COLUMN credential_id uuid;
ALTER TABLE generations ADD COLUMN own_failures jsonb;
ALTER TABLE generations ADD COLUMN fee numeric(38, 0);

-- What an own key's account at the provider stores can be read and continued with that key alone.
ALTER TABLE saved_responses ADD COLUMN own_key_id uuid;
ALTER TABLE saved_items ADD COLUMN own_key_id uuid;
