// The owners of a request: its organization, team, user and key. Rows of reports name them, and usage can be grouped by
// them.

export const OWNERS = ['organization', 'team', 'user', 'api_key'] as const;
export type Owner = (typeof OWNERS)[number];

/** The dimensions that usage can be grouped by. */
export const DIMENSIONS = ['model', ...OWNERS] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** A series of usage can be grouped by one of these dimensions. A request with several tags is in the group of each. */
export const SERIES_DIMENSIONS = [...DIMENSIONS, 'provider', 'tag', 'status'] as const;
export type SeriesDimension = (typeof SERIES_DIMENSIONS)[number];

export function isDimension(name: string): name is Dimension {
  return DIMENSIONS.some((dimension) => dimension === name);
}

/** The ids of a row's owners, under their names in the API; null: the row has no such owner. */
export type OwnerIds = { readonly [Name in Owner as `${Name}_id`]?: string | null };

/** Names by id: an organization's and a team's slug, a person's email address, a key's name. */
export type OwnerNames = Readonly<Record<Owner, ReadonlyMap<string, string>>>;

/**
 * The names of the owners with these ids; a deleted owner has none. `organizationId`: only owners of this organization
 * are named; null: owners of every organization.
 */
export type FindOwnerNames = (
  organizationId: string | null,
  ids: Readonly<Record<Owner, readonly string[]>>,
) => Promise<OwnerNames>;

/** A row with a name beside each id of an owner; null: there is no such owner, or its name is not known. */
export type Named<Row> = Row & { readonly [Name in Owner]?: string | null };

export type NameRows = <Row extends OwnerIds>(rows: readonly Row[]) => Promise<Named<Row>[]>;

/** Names the owners in rows of one scope. */
export function namingRows(find: FindOwnerNames, organizationId: string | null): NameRows {
  return async (rows) => {
    const ids = Object.fromEntries(OWNERS.map((owner) => [owner, distinct(rows, owner)])) as Record<Owner, string[]>;
    const names = await find(organizationId, ids);
    return rows.map((row) => withNames(row, names));
  };
}

function distinct(rows: readonly OwnerIds[], owner: Owner): string[] {
  return [...new Set(rows.map((row) => row[`${owner}_id`]).filter((id) => id != null))];
}

function withNames<Row extends OwnerIds>(row: Row, names: OwnerNames): Named<Row> {
  const named: Record<string, unknown> = {};
  for (const [member, value] of Object.entries(row)) {
    named[member] = value;
    const owner = ownerOf(member);
    if (owner !== null) named[owner] = names[owner].get(value as string) ?? null;
  }
  return named as Named<Row>;
}

/** The owner whose id this member of a row is; null: it is not an owner's id. */
export function ownerOf(member: string): Owner | null {
  return OWNERS.find((owner) => member === `${owner}_id`) ?? null;
}
