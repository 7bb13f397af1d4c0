-- What changes the rates of a request (tiers, service tiers, speeds, regions, factors), in the words of the
-- configuration file. null: the amounts are all there is.
ALTER TABLE prices ADD COLUMN terms jsonb;
-- What a reply was served with and used beside its plain counts, as far as its cost depends on it.
ALTER TABLE generations ADD COLUMN usage_details jsonb;
