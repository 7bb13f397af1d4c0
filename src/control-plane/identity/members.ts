// The people of an organization or of a team in it, and their roles.

import { z } from 'zod';
import type { Member, MemberScope } from '../../domain/identity/member.ts';
import { type Asked, type Operation, operation } from '../operation.ts';
import { actorOf, idOf, type Tenancy } from './asked-of.ts';
import { emailField, pageQuery, roleField, showMoment, shownId, shownMoment } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from './outcome.ts';

const shown = z
  .object({ user_id: shownId, email: z.string(), role: roleField, created_at: shownMoment })
  .meta({ id: 'Member' });

function show({ userId, email, role, createdAtMs }: Member): z.output<typeof shown> {
  return { user_id: userId, email, role, created_at: showMoment(createdAtMs) };
}

/** Members of what: the organization itself, or the team that the path names. */
interface Group {
  readonly name: 'Member' | 'TeamMember';
  readonly words: string;
  readonly teamId: (ids: Readonly<Record<string, string>>) => string | null;
}

export const ORGANIZATION_MEMBERS: Group = { name: 'Member', words: 'the organization', teamId: () => null };
export const TEAM_MEMBERS: Group = { name: 'TeamMember', words: 'the team', teamId: (ids) => idOf(ids, 'teamId') };

function scopeOf(
  tenancy: Tenancy,
  group: Group,
  asked: Pick<Asked<unknown, unknown>, 'principal' | 'ids'>,
): MemberScope {
  return { organizationId: tenancy.organizationId(asked), teamId: group.teamId(asked.ids) };
}

export function listMembers(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `list${group.name}s${tenancy.suffix}`,
    summary: `Lists the members of ${group.words}.`,
    query: pageQuery,
    answer: pageOf(shown),
    run: async (asked) =>
      pageOrRefused(await store.listMembers({ ...asked.query, ...scopeOf(tenancy, group, asked) }), show),
  });
}

export function addMember(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `add${group.name}${tenancy.suffix}`,
    summary: `Adds a person to ${group.words} by e-mail address.`,
    body: z.strictObject({ email: emailField, role: roleField.default('member') }),
    answer: answerOf(shown),
    status: 201,
    run: async (asked) =>
      shownOrRefused(await store.addMember(actorOf(asked.principal), scopeOf(tenancy, group, asked), asked.body), show),
  });
}

export function setMemberRole(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `set${group.name}Role${tenancy.suffix}`,
    summary: `Changes a member's role in ${group.words}; the last owner stays one.`,
    body: z.strictObject({ role: roleField }),
    answer: answerOf(shown),
    run: async (asked) => {
      const order = { userId: idOf(asked.ids, 'userId'), role: asked.body.role };
      return shownOrRefused(
        await store.setMemberRole(actorOf(asked.principal), scopeOf(tenancy, group, asked), order),
        show,
      );
    },
  });
}

export function removeMember(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `remove${group.name}${tenancy.suffix}`,
    summary: `Removes a member from ${group.words} and revokes the keys that were theirs there; the last owner stays.`,
    answer: answerOf(z.object({ removed: z.literal(true), revoked_keys: z.int() })),
    run: async (asked) => {
      const removed = await store.removeMember(
        actorOf(asked.principal),
        scopeOf(tenancy, group, asked),
        idOf(asked.ids, 'userId'),
      );
      return shownOrRefused(removed, ({ revokedKeys }) => ({ removed: true as const, revoked_keys: revokedKeys }));
    },
  });
}
