-- How requests to a provider differ from the usual ones, in the words of the configuration file; and a key that is sent
-- in a header of any name.

ALTER TABLE providers ADD COLUMN requests jsonb;
ALTER TABLE providers DROP CONSTRAINT providers_auth_check;
ALTER TABLE providers ADD CONSTRAINT providers_auth_check CHECK (auth ~ '^[!#$%&''*+.^_`|~0-9a-z-]{1,100}$');
