-- stored_objects: shared: every organization may name what is stored in the operator's account at this provider. null: nobody may, since whose it is
-- is not known.
ALTER TABLE providers ADD COLUMN stored_objects text CHECK (stored_objects = 'shared');
