// Access tokens of people: made, listed, revoked, and which organization they are working in. A token is shown once.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import type { Refused } from './change.ts';
import type { Page, PageQuestion } from './page.ts';

export interface Token {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly prefix: string;
  readonly activeOrganizationId: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly revokedAtMs: number | null;
}

export interface TokenWithSecret extends Token {
  readonly secret: string;
}

export interface TokenOrder {
  readonly userId: string;
  readonly name: string;
  /** 60 to 31,536,000 (a year). */
  readonly lifetimeSeconds: number;
  readonly organizationId?: string | null | undefined;
}

/** `userId` null: whoever's it is (platform administrators and the command line). */
export interface TokenName {
  readonly tokenId: string;
  readonly userId: string | null;
}

export async function createToken(_postgres: Postgres, _secrets: { readonly masterKey: Buffer }, _actor: Actor, _order: TokenOrder): Promise<TokenWithSecret | Refused> {
  throw new Error('follows');
}
export async function listTokens(_postgres: PostgresClient, _question: PageQuestion & { userId: string }): Promise<Page<Token> | Refused> {
  throw new Error('follows');
}
export async function revokeToken(_postgres: Postgres, _actor: Actor, _name: TokenName): Promise<Token | Refused> {
  throw new Error('follows');
}
/** `not_found`: the user is no member of that organization (platform administrators may work in any). null leaves the organization. */
export async function setActiveOrganization(_postgres: Postgres, _actor: Actor, _name: TokenName, _organizationId: string | null): Promise<Token | Refused> {
  throw new Error('follows');
}
