// Access tokens of people: a person's own, and those that a platform administrator issues to a member.

import { z } from 'zod';
import type { Token, TokenWithSecret } from '../../domain/identity/access-token.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { idField, labelField, pageQuery, showMoment, showMomentOrNull, shownId, shownMoment } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { actorOf, idOf, personOf } from './tenancy.ts';

const LIFETIME_SECONDS_DEFAULT = 30 * 86_400;
const LIFETIME_SECONDS_MAX = 365 * 86_400;

const shown = z
  .object({
    id: shownId,
    user_id: shownId.nullable(),
    name: z.string(),
    prefix: z.string(),
    active_organization_id: shownId.nullable(),
    created_at: shownMoment,
    expires_at: shownMoment,
    revoked_at: shownMoment.nullable(),
  })
  .meta({ id: 'Token' });
const shownWithSecret = shown.extend({ secret: z.string() }).meta({ id: 'TokenWithSecret' });

function show(token: Token): z.output<typeof shown> {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    prefix: token.prefix,
    active_organization_id: token.activeOrganizationId,
    created_at: showMoment(token.createdAtMs),
    expires_at: showMoment(token.expiresAtMs),
    revoked_at: showMomentOrNull(token.revokedAtMs),
  };
}

function showWithSecret(token: TokenWithSecret): z.output<typeof shownWithSecret> {
  return { ...show(token), secret: token.secret };
}

const params = {
  name: labelField,
  lifetime_seconds: z
    .int('must be a whole number')
    .min(60, 'must be at least 60')
    .max(LIFETIME_SECONDS_MAX, 'must be at most a year')
    .default(LIFETIME_SECONDS_DEFAULT),
};

export function listMyTokens(store: IdentityStore): Operation {
  return operation({
    id: 'listMyTokens',
    summary: "Lists the caller's access tokens.",
    query: pageQuery,
    answer: pageOf(shown),
    run: async ({ principal, query }) =>
      pageOrRefused(await store.listTokens({ ...query, userId: personOf(principal) }), show),
  });
}

export function createMyToken(store: IdentityStore): Operation {
  return operation({
    id: 'createMyToken',
    summary: 'Makes another access token for the caller; its secret is in this answer and nowhere else.',
    body: z.strictObject({ ...params, organization_id: idField.nullable().optional() }),
    answer: answerOf(shownWithSecret),
    status: 201,
    run: async ({ principal, body: { name, lifetime_seconds, organization_id } }) => {
      const wanted = {
        userId: personOf(principal),
        name,
        lifetimeSeconds: lifetime_seconds,
        organizationId: organization_id,
      };
      return shownOrRefused(await store.createToken(actorOf(principal), wanted), showWithSecret);
    },
  });
}

export function revokeMyToken(store: IdentityStore): Operation {
  return operation({
    id: 'revokeMyToken',
    summary: "Revokes one of the caller's access tokens.",
    answer: answerOf(shown),
    run: async ({ principal, ids }) =>
      shownOrRefused(
        await store.revokeToken(actorOf(principal), { tokenId: idOf(ids, 'tokenId'), userId: personOf(principal) }),
        show,
      ),
  });
}

export function setMyActiveOrganization(store: IdentityStore): Operation {
  return operation({
    id: 'setMyActiveOrganization',
    summary: 'Chooses the organization that the presented access token works in; null for none.',
    body: z.strictObject({ organization_id: idField.nullable() }),
    answer: answerOf(shown),
    run: async ({ principal, body }) => {
      const name = { tokenId: principal.apiKeyId, userId: personOf(principal) };
      return shownOrRefused(await store.setActiveOrganization(actorOf(principal), name, body.organization_id), show);
    },
  });
}

/**
 * A platform administrator issues a person's first access token, because only the platform can vouch for the person.
 */
export function issueMemberToken(store: IdentityStore): Operation {
  return operation({
    id: 'issueMemberToken',
    summary: 'Makes an access token for a member of the organization, working in it.',
    body: z.strictObject(params),
    answer: answerOf(shownWithSecret),
    status: 201,
    run: async ({ principal, ids, body: { name, lifetime_seconds } }) => {
      const wanted = {
        userId: idOf(ids, 'userId'),
        name,
        lifetimeSeconds: lifetime_seconds,
        organizationId: idOf(ids, 'organizationId'),
      };
      return shownOrRefused(await store.createToken(actorOf(principal), wanted), showWithSecret);
    },
  });
}
