// Organizations: made, listed, looked up, changed. Platform administration: the caller is nobody's tenant.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface Organization {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly billing: 'prepaid' | 'none';
  /** The organization's wallet is frozen: no new credit is lent, requests are refused with billing_frozen. */
  readonly frozen: boolean;
  readonly createdAtMs: number;
}

export interface OrganizationOrder {
  readonly slug: string;
  readonly displayName?: string | undefined;
  readonly billing: 'prepaid' | 'none';
  /** Email of its first owner; the user is made when there is none. */
  readonly ownerEmail?: string | undefined;
}

/** What is absent stays. */
export interface OrganizationChange {
  readonly displayName?: string | undefined;
  readonly billing?: 'prepaid' | 'none' | undefined;
  readonly frozen?: boolean | undefined;
}

export async function createOrganization(_postgres: Postgres, _actor: Actor, _order: OrganizationOrder): Promise<Organization | Refused> {
  throw new Error('follows');
}
export async function listOrganizations(_postgres: PostgresClient, _question: PageQuestion): Promise<Page<Organization> | Refused> {
  throw new Error('follows');
}
export async function getOrganization(_postgres: PostgresClient, _organizationId: string): Promise<Organization | Refused> {
  throw new Error('follows');
}
/** For commands, which name organizations by slug. */
export async function findOrganizationBySlug(_postgres: PostgresClient, _slug: string): Promise<Organization | Refused> {
  throw new Error('follows');
}
export async function updateOrganization(_postgres: Postgres, _actor: Actor, _organizationId: string, _change: OrganizationChange): Promise<Organization | Refused> {
  throw new Error('follows');
}
