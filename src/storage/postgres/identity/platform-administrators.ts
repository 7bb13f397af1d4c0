// Lists, adds and removes the people who administer the whole installation beside the holder of ADMIN_TOKEN.

import type { Actor } from '../../../domain/identity/actor.ts';
import { areUuids, emailProblem } from '../../../domain/identity/names.ts';
import type { PlatformAdministrator } from '../../../domain/identity/platform-administrator.ts';
import type { Page, PageParams } from '../../../domain/lists/page.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { addAccount } from './accounts.ts';
import { recordAudit } from './audit.ts';
import { change, conflict, NOT_FOUND, refuseProblems } from './change.ts';
import { createdAtMs, readPage } from './page.ts';
import { forgetGrants } from './sign-in-grants.ts';

interface AdministratorRow {
  readonly id: string;
  readonly created_us: string;
  readonly email: string;
}

const COLUMNS = 'p.user_id AS id, (extract(epoch FROM p.created_at) * 1000000)::bigint AS created_us, u.email';
const SOURCE = 'platform_administrators p JOIN users u ON u.id = p.user_id';

export async function listPlatformAdministrators(
  postgres: PostgresClient,
  params: PageParams,
): Promise<Page<PlatformAdministrator> | Refused> {
  return readPage(
    postgres,
    params,
    `SELECT ${COLUMNS} FROM ${SOURCE}
      WHERE ($1::bigint IS NULL OR (p.created_at, p.user_id) >
        (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::uuid))
      ORDER BY p.created_at, p.user_id LIMIT $3`,
    [],
    toAdministrator,
  );
}

/** `conflict`: the person is an administrator already. */
export async function addPlatformAdministrator(
  postgres: Postgres,
  actor: Actor,
  email: string,
): Promise<PlatformAdministrator | Refused> {
  const problem = refuseProblems({ email: emailProblem(email) });
  if (problem !== null) return problem;
  return change(postgres, 'email', async (client) => {
    await addAccount(client, email);
    const inserted = await client.query<{ user_id: string }>(
      `INSERT INTO platform_administrators (user_id) SELECT id FROM users WHERE lower(email) = lower($1)
        ON CONFLICT DO NOTHING RETURNING user_id`,
      [email],
    );
    const userId = inserted.rows[0]?.user_id;
    if (userId === undefined) return conflict('email', 'is a platform administrator already');
    const added = await findAdministrator(client, userId);
    await recordAudit(client, actor, {
      organizationId: null,
      action: 'platform_administrator.add',
      target: { kind: 'user', id: userId },
      after: added,
    });
    await notifyPrincipalsChanged(client, [userId]);
    return added ?? NOT_FOUND;
  });
}

export async function removePlatformAdministrator(
  postgres: Postgres,
  actor: Actor,
  userId: string,
): Promise<{ readonly removed: true } | Refused> {
  if (!areUuids(userId)) return NOT_FOUND;
  return change(postgres, 'email', async (client) => {
    const before = await findAdministrator(client, userId);
    if (before === null) return NOT_FOUND;
    await client.query('DELETE FROM platform_administrators WHERE user_id = $1', [userId]);
    await forgetGrants(client, userId, null);
    await recordAudit(client, actor, {
      organizationId: null,
      action: 'platform_administrator.remove',
      target: { kind: 'user', id: userId },
      before,
    });
    await notifyPrincipalsChanged(client, [userId]);
    return { removed: true };
  });
}

async function findAdministrator(client: PostgresClient, userId: string): Promise<PlatformAdministrator | null> {
  const { rows } = await client.query<AdministratorRow>(
    `SELECT ${COLUMNS} FROM ${SOURCE} WHERE p.user_id = $1 FOR UPDATE OF p`,
    [userId],
  );
  return rows[0] === undefined ? null : toAdministrator(rows[0]);
}

function toAdministrator(row: AdministratorRow): PlatformAdministrator {
  return { userId: row.id, email: row.email, createdAtMs: createdAtMs(row) };
}
