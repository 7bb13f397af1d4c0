// Teams of an organization.

import { z } from 'zod';
import type { Team } from '../../domain/identity/team.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { labelField, pageQuery, showMoment, shownId, shownMoment, slugField } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { actorOf, idOf, listOf, type Tenancy } from './tenancy.ts';

const shown = z
  .object({ id: shownId, slug: z.string(), display_name: z.string(), created_at: shownMoment })
  .meta({ id: 'Team' });

function show({ id, slug, displayName, createdAtMs }: Team): z.output<typeof shown> {
  return { id, slug, display_name: displayName, created_at: showMoment(createdAtMs) };
}

export function listTeams(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `listTeams${tenancy.suffix}`,
    summary: 'Lists the teams of the organization.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) =>
      pageOrRefused(
        await listOf(store, tenancy, input, (organizationId) => store.listTeams({ ...input.query, organizationId })),
        show,
      ),
  });
}

export function createTeam(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `createTeam${tenancy.suffix}`,
    summary: 'Makes a team in the organization.',
    body: z.strictObject({ slug: slugField, display_name: labelField.optional() }),
    answer: answerOf(shown),
    status: 201,
    run: async (input) => {
      const { slug, display_name } = input.body;
      return shownOrRefused(
        await store.createTeam(actorOf(input.principal), {
          organizationId: tenancy.organizationId(input),
          slug,
          displayName: display_name,
        }),
        show,
      );
    },
  });
}

export function getTeam(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `getTeam${tenancy.suffix}`,
    summary: 'Shows a team of the organization.',
    answer: answerOf(shown),
    run: async (input) =>
      shownOrRefused(
        await store.getTeam({ organizationId: tenancy.organizationId(input), teamId: idOf(input.ids, 'teamId') }),
        show,
      ),
  });
}

export function updateTeam(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `updateTeam${tenancy.suffix}`,
    summary: 'Renames a team; what is left out stays.',
    body: z.strictObject({ slug: slugField.optional(), display_name: labelField.optional() }),
    answer: answerOf(shown),
    run: async (input) => {
      const name = { organizationId: tenancy.organizationId(input), teamId: idOf(input.ids, 'teamId') };
      const { slug, display_name } = input.body;
      return shownOrRefused(
        await store.updateTeam(actorOf(input.principal), name, { slug, displayName: display_name }),
        show,
      );
    },
  });
}

export function deleteTeam(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `deleteTeam${tenancy.suffix}`,
    summary: 'Deletes a team that has no live keys.',
    answer: answerOf(z.object({ deleted: z.literal(true) })),
    run: async (input) => {
      const name = { organizationId: tenancy.organizationId(input), teamId: idOf(input.ids, 'teamId') };
      return shownOrRefused(await store.deleteTeam(actorOf(input.principal), name), ({ deleted }) => ({ deleted }));
    },
  });
}
