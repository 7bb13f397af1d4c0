// Two organizations with people, teams, keys and tokens, made through the API of a running installation: the actors of
// the identity tests.

import assert from 'node:assert/strict';
import { httpCall } from './http-call.ts';

/** As random as an installation with DATABASE_URL requires. */
export const ADMIN_TOKEN = 'tga-Yk3vQ9xT7mZ2sLr8WcDn5HfBpJ6uGe4A';

type Json = Readonly<Record<string, unknown>>;

/** Calls the API and resolves with its `data`; fails on any status other than the expected one. */
export async function ask(
  url: string,
  credential: string,
  method: string,
  path: string,
  body?: Json,
  status = 200,
): Promise<Json> {
  const answer = await httpCall(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${credential}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.equal(answer.status, status, `${method} ${path}: ${answer.body.toString()}`);
  return (JSON.parse(answer.body.toString()) as { data: Json }).data;
}

/** Finds the id of an organization, with a credential of the platform. */
export async function organizationIdOf(url: string, credential: string, slug: string): Promise<string> {
  const organizations = (await ask(
    url,
    credential,
    'GET',
    '/v1/admin/organizations?limit=100',
  )) as unknown as readonly Json[];
  return String(organizations.find((organization) => organization['slug'] === slug)?.['id']);
}

export interface Person {
  readonly userId: string;
  readonly token: string;
  readonly tokenId: string;
}

/** One organization, as its owner sees and changes it. */
export class Tenant {
  readonly url: string;
  readonly id: string;
  readonly owner: Person;
  private made = 0;

  private constructor(url: string, id: string, owner: Person) {
    this.url = url;
    this.id = id;
    this.owner = owner;
  }

  static async create(url: string, slug: string, billing: 'prepaid' | 'none' = 'none'): Promise<Tenant> {
    const organization = await ask(
      url,
      ADMIN_TOKEN,
      'POST',
      '/v1/admin/organizations',
      { slug, billing, owner_email: `owner@${slug}.test` },
      201,
    );
    return Tenant.adopt(url, String(organization['id']));
  }

  /** Uses an existing organization through its first owner. */
  static async adopt(url: string, id: string): Promise<Tenant> {
    const members = (await ask(
      url,
      ADMIN_TOKEN,
      'GET',
      `/v1/admin/organizations/${id}/members`,
    )) as unknown as readonly Json[];
    const owner = members.find((member) => member['role'] === 'owner');
    return new Tenant(url, id, await issueToken(url, id, String(owner?.['user_id'])));
  }

  as(method: string, path: string, body?: Json, status = 200): Promise<Json> {
    return ask(this.url, this.owner.token, method, `/v1/admin/active-org${path}`, body, status);
  }

  /** Adds a member with a token of their own, optionally in a team. */
  async addPerson(
    role: 'owner' | 'admin' | 'member',
    team?: { id: string; role: 'owner' | 'admin' | 'member' },
  ): Promise<Person> {
    const userId = await this.addMember(role, team);
    return issueToken(this.url, this.id, userId);
  }

  async addMember(
    role: 'owner' | 'admin' | 'member',
    team?: { id: string; role: 'owner' | 'admin' | 'member' },
  ): Promise<string> {
    const email = `person-${this.next()}-${this.id.slice(0, 8)}@people.test`;
    const member = await this.as('POST', '/members', { email, role }, 201);
    if (team !== undefined) await this.as('POST', `/teams/${team.id}/members`, { email, role: team.role }, 201);
    return String(member['user_id']);
  }

  async addTeam(): Promise<string> {
    return String((await this.as('POST', '/teams', { slug: `team-${this.next()}` }, 201))['id']);
  }

  async addKey(fields: Json = {}): Promise<{ id: string; secret: string }> {
    const key = await this.as('POST', '/keys', { name: `key ${this.next()}`, ...fields }, 201);
    return { id: String(key['id']), secret: String(key['secret']) };
  }

  next(): number {
    this.made += 1;
    return this.made;
  }
}

export async function issueToken(url: string, organizationId: string, userId: string): Promise<Person> {
  const token = await ask(
    url,
    ADMIN_TOKEN,
    'POST',
    `/v1/admin/organizations/${organizationId}/members/${userId}/tokens`,
    { name: 'test' },
    201,
  );
  return { userId, token: String(token['secret']), tokenId: String(token['id']) };
}
