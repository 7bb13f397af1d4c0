// Inference keys: all keys of an organization for its administrators, and a member's own. Only the answer that makes a
// key contains its secret.

import { z } from 'zod';
import type { Key, KeyReference, KeyWithSecret } from '../../domain/identity/api-key.ts';
import type { AllowedModels, SetModelAccessParams } from '../../domain/identity/model-access.ts';
import { answerOf, pageOf, pageOrRefused, shownOrRefused } from '../answers.ts';
import { type Operation, type OperationSubject, operation } from '../operation.ts';
import {
  idField,
  labelField,
  momentField,
  pageQuery,
  showMoment,
  showMomentOrNull,
  shownId,
  shownMoment,
} from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { allowedModelsField, showAccess, shownAccess } from './model-access.ts';
import { ACTIVE, actorOf, idOf, listOf, personOf, type Tenancy } from './tenancy.ts';

const OVERLAP_SECONDS_MAX = 30 * 86_400;

const shown = z
  .object({
    id: shownId,
    name: z.string(),
    prefix: z.string(),
    team_id: shownId.nullable(),
    user_id: shownId.nullable(),
    payer: z.enum(['organization', 'user']),
    ...shownAccess,
    created_at: shownMoment,
    expires_at: shownMoment.nullable(),
    revoked_at: shownMoment.nullable(),
    previous_secret_until: shownMoment.nullable(),
  })
  .meta({ id: 'Key' });
const shownWithSecret = shown.extend({ secret: z.string() }).meta({ id: 'KeyWithSecret' });

function show(key: Key): z.output<typeof shown> {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    team_id: key.teamId,
    user_id: key.userId,
    payer: key.payer,
    ...showAccess(key),
    created_at: showMoment(key.createdAtMs),
    expires_at: showMomentOrNull(key.expiresAtMs),
    revoked_at: showMomentOrNull(key.revokedAtMs),
    previous_secret_until: showMomentOrNull(key.previousSecretUntilMs),
  };
}

function showWithSecret(key: KeyWithSecret): z.output<typeof shownWithSecret> {
  return { ...show(key), secret: key.secret };
}

const expiry = momentField.nullable();

function readExpiry(text: string | null | undefined): number | null | undefined {
  return typeof text === 'string' ? Date.parse(text) : text;
}

/**
 * The allow-list of the platform or of the organization, by the route. undefined: the request leaves the list as it is.
 */
function readModels({ setBy }: Tenancy, models: AllowedModels | undefined): SetModelAccessParams | undefined {
  return models === undefined ? undefined : { setBy, models };
}

/** The keys that a route can reach. */
interface KeySet {
  readonly name: 'Key' | 'MyKey';
  readonly words: string;
  readonly tenancy: Tenancy;
  readonly userId: (input: OperationSubject) => string | undefined;
}

/** All keys of the organization. */
export function keysOf(tenancy: Tenancy): KeySet {
  return { name: 'Key', words: 'an inference key', tenancy, userId: () => undefined };
}
export const MY_KEYS: KeySet = {
  name: 'MyKey',
  words: "one of the caller's inference keys",
  tenancy: ACTIVE,
  userId: ({ principal }) => personOf(principal),
};

function referenceOf(input: OperationSubject, keySet: KeySet): KeyReference {
  return {
    organizationId: keySet.tenancy.organizationId(input),
    keyId: idOf(input.ids, 'keyId'),
    userId: keySet.userId(input),
  };
}

export function listKeys(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `listKeys${tenancy.suffix}`,
    summary: 'Lists the inference keys of the organization, revoked ones too.',
    query: pageQuery.extend({ team_id: idField.optional(), user_id: idField.optional() }),
    answer: pageOf(shown),
    run: async (input) => {
      const { limit, cursor, team_id, user_id } = input.query;
      const params = { limit, cursor, teamId: team_id, userId: user_id };
      return pageOrRefused(
        await listOf(store, tenancy, input, (organizationId) => store.listKeys({ ...params, organizationId })),
        show,
      );
    },
  });
}

export function listMyKeys(store: IdentityStore): Operation {
  return operation({
    id: 'listMyKeys',
    summary: "Lists the caller's inference keys in the active organization, revoked ones too.",
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) => {
      const params = {
        ...input.query,
        organizationId: ACTIVE.organizationId(input),
        userId: personOf(input.principal),
      };
      return pageOrRefused(await store.listKeys(params), show);
    },
  });
}

export function createKey(store: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `createKey${tenancy.suffix}`,
    summary:
      "Makes an inference key; its secret is in this answer and nowhere else. A user's own wallet is " +
      "charged by keys of that user's making.",
    body: z.strictObject({
      name: labelField,
      team_id: idField.nullable().optional(),
      user_id: idField.nullable().optional(),
      payer: z.enum(['organization', 'user']).optional(),
      allowed_models: allowedModelsField.optional(),
      expires_at: expiry.optional(),
    }),
    answer: answerOf(shownWithSecret),
    status: 201,
    run: async (input) => {
      const { name, team_id, user_id, payer, allowed_models, expires_at } = input.body;
      const params = {
        organizationId: tenancy.organizationId(input),
        name,
        teamId: team_id,
        userId: user_id,
        payer,
        allowedModels: readModels(tenancy, allowed_models),
        expiresAtMs: readExpiry(expires_at),
      };
      return shownOrRefused(await store.createKey(actorOf(input.principal), params), showWithSecret);
    },
  });
}

/** The key charges the member's own wallet. Only administrators make keys that charge the organization's. */
export function createMyKey(store: IdentityStore): Operation {
  return operation({
    id: 'createMyKey',
    summary:
      "Makes an inference key that the caller's own wallet pays for; its secret is in this answer and nowhere else.",
    body: z.strictObject({
      name: labelField,
      allowed_models: allowedModelsField.optional(),
      expires_at: expiry.optional(),
    }),
    answer: answerOf(shownWithSecret),
    status: 201,
    run: async (input) => {
      const { name, allowed_models, expires_at } = input.body;
      const whose = {
        organizationId: ACTIVE.organizationId(input),
        userId: personOf(input.principal),
        payer: 'user',
      } as const;
      const params = {
        ...whose,
        name,
        allowedModels: readModels(ACTIVE, allowed_models),
        expiresAtMs: readExpiry(expires_at),
      };
      return shownOrRefused(await store.createKey(actorOf(input.principal), params), showWithSecret);
    },
  });
}

export function getKey(store: IdentityStore, keySet: KeySet): Operation {
  return operation({
    id: `get${keySet.name}${keySet.tenancy.suffix}`,
    summary: `Shows ${keySet.words}, without its secret.`,
    answer: answerOf(shown),
    run: async (input) => shownOrRefused(await store.getKey(referenceOf(input, keySet)), show),
  });
}

export function updateKey(store: IdentityStore, keySet: KeySet): Operation {
  return operation({
    id: `update${keySet.name}${keySet.tenancy.suffix}`,
    summary: `Changes the name, models or expiry of ${keySet.words}, for who pays for it; what is left out stays.`,
    body: z.strictObject({
      name: labelField.optional(),
      allowed_models: allowedModelsField.optional(),
      expires_at: expiry.optional(),
    }),
    answer: answerOf(shown),
    run: async (input) => {
      const { name, allowed_models, expires_at } = input.body;
      const change = {
        name,
        allowedModels: readModels(keySet.tenancy, allowed_models),
        expiresAtMs: readExpiry(expires_at),
      };
      return shownOrRefused(await store.updateKey(actorOf(input.principal), referenceOf(input, keySet), change), show);
    },
  });
}

export function revokeKey(store: IdentityStore, keySet: KeySet): Operation {
  return operation({
    id: `revoke${keySet.name}${keySet.tenancy.suffix}`,
    summary: `Revokes ${keySet.words}, whoever pays for it; every gateway refuses it within a second.`,
    answer: answerOf(shown),
    run: async (input) =>
      shownOrRefused(await store.revokeKey(actorOf(input.principal), referenceOf(input, keySet)), show),
  });
}

export function rotateKey(store: IdentityStore, keySet: KeySet): Operation {
  return operation({
    id: `rotate${keySet.name}${keySet.tenancy.suffix}`,
    summary: `Gives ${keySet.words} a new secret, for who pays for it; the old one stays good for the overlap.`,
    body: z.strictObject({
      overlap_seconds: z
        .int('must be a whole number')
        .min(0, 'must not be negative')
        .max(OVERLAP_SECONDS_MAX, 'must be at most 30 days'),
    }),
    answer: answerOf(shownWithSecret),
    run: async (input) => {
      const params = { overlapSeconds: input.body.overlap_seconds };
      return shownOrRefused(
        await store.rotateKey(actorOf(input.principal), referenceOf(input, keySet), params),
        showWithSecret,
      );
    },
  });
}
