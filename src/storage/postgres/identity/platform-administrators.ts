// The people who administer the whole installation, beside the holder of ADMIN_TOKEN.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface PlatformAdministrator {
  readonly userId: string;
  readonly email: string;
  readonly createdAtMs: number;
}

export async function listPlatformAdministrators(_postgres: PostgresClient, _question: PageQuestion): Promise<Page<PlatformAdministrator> | Refused> {
  throw new Error('follows');
}
export async function addPlatformAdministrator(_postgres: Postgres, _actor: Actor, _email: string): Promise<PlatformAdministrator | Refused> {
  throw new Error('follows');
}
export async function removePlatformAdministrator(_postgres: Postgres, _actor: Actor, _userId: string): Promise<{ readonly removed: true } | Refused> {
  throw new Error('follows');
}
