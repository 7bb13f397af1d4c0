-- Files that clients of an organization uploaded (spec 4.7). Their bytes lie elsewhere, under the same id.
CREATE TABLE media_objects (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  -- Whose credential uploaded it first.
  api_key_id uuid,
  sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
  bytes bigint NOT NULL CHECK (bytes >= 0),
  content_type text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- By which it is kept: who uploads the same bytes again gets the same id for as long as a new one.
  uploaded_at timestamptz NOT NULL DEFAULT now(),
  -- Only inside an organization: what another one has must not show.
  UNIQUE (organization_id, sha256)
);
CREATE INDEX media_objects_of_organization ON media_objects (organization_id, created_at, id);
CREATE INDEX media_objects_by_age ON media_objects (uploaded_at);

-- How many bytes an organization has, and how many its uploads under way may still add.
CREATE TABLE media_quotas (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  stored_bytes bigint NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
  reserved_bytes bigint NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0)
);

-- An upload under way. An object without a row here or in media_objects belongs to nobody and is removed.
CREATE TABLE media_reservations (
  -- That of the object to be.
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES media_quotas,
  bytes bigint NOT NULL CHECK (bytes > 0),
  -- After it no process works on the upload any more.
  expires_at timestamptz NOT NULL
);
CREATE INDEX media_reservations_by_age ON media_reservations (expires_at);

-- Objects whose rows are gone and whose bytes are still to be removed.
CREATE TABLE media_removals (
  id uuid PRIMARY KEY,
  since timestamptz NOT NULL DEFAULT now()
);

-- What an organization's files were used for, by day in UTC.
CREATE TABLE media_usage (
  organization_id uuid NOT NULL REFERENCES organizations,
  day date NOT NULL,
  uploads bigint NOT NULL DEFAULT 0,
  -- Of these, bytes that the organization had already.
  deduped_uploads bigint NOT NULL DEFAULT 0,
  uploaded_bytes bigint NOT NULL DEFAULT 0,
  downloads bigint NOT NULL DEFAULT 0,
  served_bytes bigint NOT NULL DEFAULT 0,
  -- The most that were stored at the end of an upload or at a look of the sweep.
  stored_bytes_max bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, day)
);

-- Where the objects of this installation lie. A directory of one machine is no place for several.
CREATE TABLE media_home (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  kind text NOT NULL CHECK (kind IN ('disk', 's3')),
  -- The machine and its directory, or the address of the bucket.
  place text NOT NULL,
  registered_at timestamptz NOT NULL DEFAULT now()
);
