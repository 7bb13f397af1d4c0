// The people of an organization or of a team in it, and their roles.

import { z } from 'zod';
import type { Member, MemberScope } from '../../domain/identity/member.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { type Operation, type OperationSubject, operation } from '../operation.ts';
import { emailField, pageQuery, roleField, showMoment, shownId, shownMoment } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { actorOf, idOf, type Tenancy } from './tenancy.ts';

const shown = z
  .object({ user_id: shownId, email: z.string(), role: roleField, created_at: shownMoment })
  .meta({ id: 'Member' });

function show({ userId, email, role, createdAtMs }: Member): z.output<typeof shown> {
  return { user_id: userId, email, role, created_at: showMoment(createdAtMs) };
}

/** What the members belong to: the organization, or the team that the path names. */
interface Group {
  readonly name: 'Member' | 'TeamMember';
  readonly words: string;
  readonly teamId: (ids: Readonly<Record<string, string>>) => string | null;
}

export const ORGANIZATION_MEMBERS: Group = { name: 'Member', words: 'the organization', teamId: () => null };
export const TEAM_MEMBERS: Group = { name: 'TeamMember', words: 'the team', teamId: (ids) => idOf(ids, 'teamId') };

function scopeOf(tenancy: Tenancy, group: Group, input: OperationSubject): MemberScope {
  return { organizationId: tenancy.organizationId(input), teamId: group.teamId(input.ids) };
}

export function listMembers(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `list${group.name}s${tenancy.suffix}`,
    summary: `Lists the members of ${group.words}.`,
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) =>
      pageOrRefused(await store.listMembers({ ...input.query, ...scopeOf(tenancy, group, input) }), show),
  });
}

export function addMember(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `add${group.name}${tenancy.suffix}`,
    summary: `Adds a person to ${group.words} by e-mail address.`,
    body: z.strictObject({ email: emailField, role: roleField.default('member') }),
    answer: answerOf(shown),
    status: 201,
    run: async (input) =>
      shownOrRefused(await store.addMember(actorOf(input.principal), scopeOf(tenancy, group, input), input.body), show),
  });
}

export function setMemberRole(store: IdentityStore, tenancy: Tenancy, group: Group): Operation {
  return operation({
    id: `set${group.name}Role${tenancy.suffix}`,
    summary: `Changes a member's role in ${group.words}; the last owner stays one.`,
    body: z.strictObject({ role: roleField }),
    answer: answerOf(shown),
    run: async (input) => {
      const params = { userId: idOf(input.ids, 'userId'), role: input.body.role };
      return shownOrRefused(
        await store.setMemberRole(actorOf(input.principal), scopeOf(tenancy, group, input), params),
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
    run: async (input) => {
      const removed = await store.removeMember(
        actorOf(input.principal),
        scopeOf(tenancy, group, input),
        idOf(input.ids, 'userId'),
      );
      return shownOrRefused(removed, ({ revokedKeys }) => ({ removed: true as const, revoked_keys: revokedKeys }));
    },
  });
}
