// Organizations: all of them for platform administrators, the active one for its members.

import { z } from 'zod';
import type { Organization, OwnOrganization } from '../../domain/identity/organization.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import {
  billingField,
  emailField,
  labelField,
  pageQuery,
  roleField,
  showMoment,
  shownId,
  shownMoment,
  slugField,
} from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { ACTIVE, actorOf, idOf, personOf } from './tenancy.ts';

const shown = z
  .object({
    id: shownId,
    slug: z.string(),
    display_name: z.string(),
    billing: billingField,
    frozen: z.boolean(),
    created_at: shownMoment,
  })
  .meta({ id: 'Organization' });

function show({ id, slug, displayName, billing, frozen, createdAtMs }: Organization): z.output<typeof shown> {
  return { id, slug, display_name: displayName, billing, frozen, created_at: showMoment(createdAtMs) };
}

const shownToMember = z
  .object({ id: shownId, slug: z.string(), display_name: z.string(), role: roleField })
  .meta({ id: 'OwnOrganization' });

function showToMember({ id, slug, displayName, role }: OwnOrganization): z.output<typeof shownToMember> {
  return { id, slug, display_name: displayName, role };
}

export function listMyOrganizations(store: IdentityStore): Operation {
  return operation({
    id: 'listMyOrganizations',
    summary: 'Lists the organizations that the caller is a member of: one of them can be the active one.',
    query: pageQuery,
    answer: pageOf(shownToMember),
    run: async ({ principal, query }) =>
      pageOrRefused(await store.listOrganizationsOfUser({ ...query, userId: personOf(principal) }), showToMember),
  });
}

export function listOrganizations(store: IdentityStore): Operation {
  return operation({
    id: 'listOrganizations',
    summary: 'Lists every organization.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async ({ query }) => pageOrRefused(await store.listOrganizations(query), show),
  });
}

export function createOrganization(store: IdentityStore): Operation {
  return operation({
    id: 'createOrganization',
    summary: 'Makes an organization, with its first owner if one is named.',
    body: z.strictObject({
      slug: slugField,
      display_name: labelField.optional(),
      billing: billingField,
      owner_email: emailField.optional(),
    }),
    answer: answerOf(shown),
    status: 201,
    run: async ({ principal, body: { slug, display_name, billing, owner_email } }) =>
      shownOrRefused(
        await store.createOrganization(actorOf(principal), {
          slug,
          displayName: display_name,
          billing,
          ownerEmail: owner_email,
        }),
        show,
      ),
  });
}

export function getOrganization(store: IdentityStore): Operation {
  return operation({
    id: 'getOrganization',
    summary: 'Shows an organization.',
    answer: answerOf(shown),
    run: async ({ ids }) => shownOrRefused(await store.getOrganization(idOf(ids, 'organizationId')), show),
  });
}

export function updateOrganization(store: IdentityStore): Operation {
  return operation({
    id: 'updateOrganization',
    summary: 'Changes the name, billing or frozen state of an organization; what is left out stays.',
    body: z.strictObject({
      display_name: labelField.optional(),
      billing: billingField.optional(),
      frozen: z.boolean().optional(),
    }),
    answer: answerOf(shown),
    run: async ({ principal, ids, body: { display_name, billing, frozen } }) =>
      shownOrRefused(
        await store.updateOrganization(actorOf(principal), idOf(ids, 'organizationId'), {
          displayName: display_name,
          billing,
          frozen,
        }),
        show,
      ),
  });
}

export function getActiveOrganization(store: IdentityStore): Operation {
  return operation({
    id: 'getActiveOrganization',
    summary: 'Shows the active organization.',
    answer: answerOf(shown),
    run: async (input) => shownOrRefused(await store.getOrganization(ACTIVE.organizationId(input)), show),
  });
}
