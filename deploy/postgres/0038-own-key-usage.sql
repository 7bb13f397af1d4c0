-- What own provider keys were used for is asked by key and time, and every minute which were used just now. Rows of the
-- service's keys are in neither index.
CREATE INDEX generations_own_keys ON generations (organization_id, credential_id, admitted_at)
  WHERE credential_id IS NOT NULL;
CREATE INDEX generations_own_keys_lately ON generations (admitted_at, credential_id) WHERE credential_id IS NOT NULL;
