// How an organization's own provider keys are used: which kinds are open to it, what it chooses, in which order keys
// are tried, who would serve a request; and what the platform grants.

import { z } from 'zod';
import { feeSchema } from '../../domain/configuration/schema/own-key-schema.ts';
import { API_NAMES } from '../../domain/models/apis.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import type { ByokFee, ByokGrant, ByokSettings } from '../../domain/own-keys/byok-settings.ts';
import type { ExplainedKeyUse } from '../../domain/own-keys/explain-key-use.ts';
import { allKinds, openKinds } from '../../domain/own-keys/key-kinds.ts';
import { KEY_PLACES, type OwnKey } from '../../domain/own-keys/own-key.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { idField, modelNameField, shownId } from '../identity/fields.ts';
import { ACTIVE, actorOf, NAMED } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import { addressFields } from './key-fields.ts';
import type { OwnKeysStore } from './own-keys-store.ts';

const template = z
  .object({
    kind: z.string(),
    settings: z.array(z.object({ name: z.string(), required: z.boolean() })),
    needs_base_url: z.boolean(),
    apis: z.array(z.enum(API_NAMES)),
  })
  .meta({ id: 'ByokTemplate' });

export function listByokTemplates(store: OwnKeysStore): Operation {
  return operation({
    id: 'listByokTemplates',
    summary: 'Lists the kinds of providers that the organization may have a key of its own for.',
    answer: z.object({ data: z.array(template) }),
    run: async (input) => {
      const settings = await store.getSettings(ACTIVE.organizationId(input));
      if (isRefused(settings)) return { kind: 'not_found' };
      const kinds = openKinds(store.catalog(), settings);
      return {
        data: kinds.map(({ name, settings: taken, needsBaseUrl, apis }) => ({
          kind: name,
          settings: taken.map((one) => ({ name: one.name, required: one.isNeeded })),
          needs_base_url: needsBaseUrl,
          apis: [...apis],
        })),
      };
    },
  });
}

const choices = {
  fallback: z.boolean().meta({ description: 'Whether the service may serve, and charge, where own keys cannot.' }),
  classifier: z
    .enum(['service', 'own'])
    .meta({ description: 'Whose key is used to ask the classifier of auto routing.' }),
  budgets: z
    .enum(['fee', 'all'])
    .meta({ description: 'What budgets count of requests on own keys: the fee, or all that they are rated at.' }),
};
const shownChoices = z.object({ enabled: z.boolean(), ...choices }).meta({ id: 'ByokSettings' });

function showChoices({ enabled, fallback, classifier, budgets }: ByokSettings): z.output<typeof shownChoices> {
  return { enabled, fallback, classifier, budgets };
}

export function getByokSettings(store: OwnKeysStore): Operation {
  return operation({
    id: 'getByokSettings',
    summary: 'Shows how the organization uses its own provider keys.',
    answer: answerOf(shownChoices),
    run: async (input) => shownOrRefused(await store.getSettings(ACTIVE.organizationId(input)), showChoices),
  });
}

export function setByokSettings(store: OwnKeysStore): Operation {
  return operation({
    id: 'setByokSettings',
    summary: 'Sets how the organization uses its own provider keys.',
    body: z.strictObject({
      fallback: choices.fallback.exactOptional(),
      classifier: choices.classifier.exactOptional(),
      budgets: choices.budgets.exactOptional(),
    }),
    answer: answerOf(shownChoices),
    run: async (input) => {
      const wanted = { ...input.body, organizationId: ACTIVE.organizationId(input) };
      return shownOrRefused(await store.setChoices(actorOf(input.principal), wanted), showChoices);
    },
  });
}

const shownOrder = z
  .object({
    kind: z.string(),
    credentials: z.array(z.object({ id: shownId, name: z.string(), place: z.enum(KEY_PLACES), position: z.int() })),
  })
  .meta({ id: 'ByokOrder' });

function showOrder(keys: readonly OwnKey[]): z.output<typeof shownOrder>[] {
  return [...Map.groupBy(keys, ({ kind }) => kind)].map(([kind, ofKind]) => ({
    kind,
    credentials: ofKind.map(({ id, name, place, position }) => ({ id, name, place, position })),
  }));
}

export function getByokOrder(store: OwnKeysStore): Operation {
  return operation({
    id: 'getByokOrder',
    summary: 'Shows in which order the organization’s own keys are tried, by kind.',
    answer: z.object({ data: z.array(shownOrder) }),
    run: async (input) => ({ data: showOrder(await store.getOrder(ACTIVE.organizationId(input))) }),
  });
}

const ids = z.array(idField).max(1_000);

export function setByokOrder(store: OwnKeysStore): Operation {
  return operation({
    id: 'setByokOrder',
    summary: 'Sets in which order the keys of a kind are tried; each of them is named once.',
    body: z.strictObject({ kind: addressFields.kind, before: ids, after: ids.default([]) }),
    answer: z.object({ data: z.array(shownOrder) }),
    run: async (input) => {
      const organizationId = ACTIVE.organizationId(input);
      return shownOrRefused(await store.setOrder(actorOf(input.principal), organizationId, input.body), showOrder);
    },
  });
}

const explanation = z
  .object({
    attempts: z.array(
      z.object({
        credential_source: z.enum(['own', 'service']),
        credential_id: shownId.nullable(),
        credential_name: z.string().nullable(),
        provider: z.string(),
        model: z.string().meta({ description: 'The provider’s own id of the model.' }),
      }),
    ),
    not_tried: z.array(z.object({ credential_id: shownId, credential_name: z.string(), reason: z.string() })),
    refusal: z.enum(['byok_key_unavailable', 'upstream_cooldown']).nullable(),
  })
  .meta({ id: 'ByokExplanation' });

function showExplanation({ attempts, notTried, refusal }: ExplainedKeyUse): z.output<typeof explanation> {
  return {
    attempts: attempts.map(({ source, key, provider, providerModel }) => ({
      credential_source: source,
      credential_id: key?.id ?? null,
      credential_name: key?.name ?? null,
      provider,
      model: providerModel,
    })),
    not_tried: notTried.map(({ key, why }) => ({ credential_id: key.id, credential_name: key.name, reason: why })),
    refusal,
  };
}

export function explainByok(store: OwnKeysStore): Operation {
  return operation({
    id: 'explainByok',
    summary:
      'Says who would serve a request at this moment, in which order, and why an own key would not; keys that ' +
      'rest are those of the process that answers.',
    query: z.object({
      model: modelNameField,
      api: z.enum(API_NAMES),
      api_key_id: idField
        .optional()
        .meta({ description: 'For requests with this inference key, and so of its team and its user.' }),
      team_id: idField.optional(),
      user_id: idField.optional(),
    }),
    answer: answerOf(explanation),
    run: async (input) => {
      const { model, api, api_key_id: apiKeyId = null, team_id: teamId = null, user_id: userId = null } = input.query;
      const caller = { apiKeyId, teamId, userId };
      const { allowedModels } = input.principal;
      const params = { organizationId: ACTIVE.organizationId(input), model, api, caller, allowedModels };
      return shownOrRefused(await store.explain(params), showExplanation);
    },
  });
}

const shownFee = z.union([z.object({ percent: z.string() }), z.object({ per_request: z.string() })]);

const grantFields = {
  enabled: z.boolean(),
  kinds: z
    .array(addressFields.kind)
    .max(200)
    .nullable()
    .meta({ description: 'Which kinds of keys the organization may have; null: every one.' }),
  custom_base_url: z.boolean().meta({ description: 'Whether kind custom may be among them.' }),
  fee: shownFee.nullable().meta({ description: 'What is charged for a request on an own key; null: nothing.' }),
  credentials_max: z.int().min(0).max(1_000),
};
const shownGrant = z.object(grantFields).meta({ id: 'ByokGrant' });

function showGrant(grant: ByokGrant): z.output<typeof shownGrant> {
  return {
    enabled: grant.enabled,
    kinds: grant.kinds === null ? null : [...grant.kinds],
    custom_base_url: grant.customBaseUrl,
    fee: showFee(grant.fee),
    credentials_max: grant.credentialsMax,
  };
}

function showFee(fee: ByokFee | null): z.output<typeof shownFee> | null {
  if (fee === null) return null;
  if (fee.kind === 'per_request') return { per_request: formatUsdString(fee.amount) };
  return { percent: (fee.basisPoints / 100).toFixed(2) };
}

export function getByokGrant(store: OwnKeysStore): Operation {
  return operation({
    id: 'getByokOfOrganization',
    summary: 'Shows what the platform lets an organization do with provider keys of its own.',
    answer: answerOf(shownGrant),
    run: async (input) => shownOrRefused(await store.getSettings(NAMED.organizationId(input)), showGrant),
  });
}

export function setByokGrant(store: OwnKeysStore): Operation {
  return operation({
    id: 'setByokOfOrganization',
    summary: 'Sets what the platform lets an organization do with provider keys of its own.',
    body: z.strictObject({
      enabled: grantFields.enabled.exactOptional(),
      kinds: grantFields.kinds.exactOptional(),
      custom_base_url: grantFields.custom_base_url.exactOptional(),
      fee: feeSchema.nullable().exactOptional(),
      credentials_max: grantFields.credentials_max.exactOptional(),
    }),
    answer: answerOf(shownGrant),
    run: async (input) => {
      const { custom_base_url, fee, credentials_max, ...same } = input.body;
      const unknown = same.kinds?.find((kind) => !allKinds(store.catalog()).some(({ name }) => name === kind));
      if (unknown !== undefined)
        return { kind: 'invalid_field', field: 'kinds', reason: `there is no kind "${unknown}"` };
      const grant = {
        ...same,
        ...(custom_base_url === undefined ? {} : { customBaseUrl: custom_base_url }),
        ...(fee === undefined ? {} : { fee }),
        ...(credentials_max === undefined ? {} : { credentialsMax: credentials_max }),
        organizationId: NAMED.organizationId(input),
      };
      return shownOrRefused(await store.setGrant(actorOf(input.principal), grant), showGrant);
    },
  });
}
