// Teams of an organization: made, listed, looked up, renamed, deleted.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface Team {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdAtMs: number;
}

/** Names a team and its tenant. */
export interface TeamName {
  readonly organizationId: string;
  readonly teamId: string;
}

export async function createTeam(_postgres: Postgres, _actor: Actor, _order: { organizationId: string; slug: string; displayName?: string | undefined }): Promise<Team | Refused> {
  throw new Error('follows');
}
export async function listTeams(_postgres: PostgresClient, _question: PageQuestion & { organizationId: string }): Promise<Page<Team> | Refused> {
  throw new Error('follows');
}
export async function getTeam(_postgres: PostgresClient, _name: TeamName): Promise<Team | Refused> {
  throw new Error('follows');
}
export async function updateTeam(_postgres: Postgres, _actor: Actor, _name: TeamName, _change: { slug?: string | undefined; displayName?: string | undefined }): Promise<Team | Refused> {
  throw new Error('follows');
}
/** A conflict while the team has live keys: deleting it would end them or move them without being asked to. */
export async function deleteTeam(_postgres: Postgres, _actor: Actor, _name: TeamName): Promise<{ readonly deleted: true } | Refused> {
  throw new Error('follows');
}
