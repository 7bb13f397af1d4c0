// Lists organizations' own provider keys, without their secrets.

import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { PAGE_COLUMNS, PAGE_CONDITION, PAGE_ORDER, readPage } from '../identity/page.ts';
import type { PostgresClient } from '../pool.ts';
import { OWN_KEY_COLUMNS, type OwnKeyRow, toOwnKey } from './own-key-rows.ts';

const LISTED = `SELECT ${OWN_KEY_COLUMNS} FROM own_keys t
  WHERE t.organization_id = $1 AND t.removed_at IS NULL ORDER BY t.place DESC, t.position, t.id`;

/** All own keys of an organization, of all kinds, in the order in which they are tried. */
export async function listOwnKeys(postgres: PostgresClient, organizationId: string): Promise<readonly OwnKey[]> {
  const { rows } = await postgres.query<OwnKeyRow>(LISTED, [organizationId]);
  return rows.map(toOwnKey);
}

const LISTED_PAGE = `SELECT ${OWN_KEY_COLUMNS}, ${PAGE_COLUMNS.replace('t.id, ', '')} FROM own_keys t
  WHERE ${PAGE_CONDITION} AND t.organization_id = $4 AND t.removed_at IS NULL ${PAGE_ORDER}`;

/** In order of creation, because a change of the order in which keys are tried would move keys between pages. */
export async function listOwnKeysByPage(
  postgres: PostgresClient,
  { organizationId, ...page }: PageParams & { readonly organizationId: string },
): Promise<Page<OwnKey> | Refused> {
  const toItem = (row: OwnKeyRow & { readonly created_us: string }): OwnKey => toOwnKey(row);
  return readPage(postgres, page, LISTED_PAGE, [organizationId], toItem);
}

const LISTED_OF_ALL = `SELECT o.slug, ${OWN_KEY_COLUMNS}
  FROM own_keys t JOIN organizations o ON o.id = t.organization_id
  WHERE t.removed_at IS NULL ORDER BY o.slug, t.name, t.id`;

export async function listOwnKeysOfAll(
  postgres: PostgresClient,
): Promise<readonly { readonly organization: string; readonly key: OwnKey }[]> {
  const { rows } = await postgres.query<OwnKeyRow & { readonly slug: string }>(LISTED_OF_ALL);
  return rows.map((row) => ({ organization: row.slug, key: toOwnKey(row) }));
}
