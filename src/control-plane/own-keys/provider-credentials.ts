// An organization's own provider keys, for its administrators. A new secret is tried at its provider before it is
// stored, unless the request says otherwise.

import { z } from 'zod';
import { destinationOf } from '../../domain/models/key-destination.ts';
import type { ByokFee } from '../../domain/own-keys/byok-settings.ts';
import type { KeyVerdict, OwnKeyChange, OwnKeyReference } from '../../domain/own-keys/key-changes.ts';
import {
  isKeyProblem,
  isOpen,
  type OwnProvider,
  ownProvider,
  secretNeededFor,
} from '../../domain/own-keys/key-kinds.ts';
import { unratedInMap } from '../../domain/own-keys/own-deployment.ts';
import type { KeyAddress, OwnKey } from '../../domain/own-keys/own-key.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { answerOf, pageOf, pageOrRefused, removedAnswer, shownOrRefused } from '../answers.ts';
import { pageQuery } from '../identity/fields.ts';
import { ACTIVE, actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, type OperationSubject, operation } from '../operation.ts';
import { addressFields, keyFields, momentOf, secretField, showKey, shownKey } from './key-fields.ts';
import type { OwnKeysStore } from './own-keys-store.ts';

const OVERLAP_SECONDS_MAX = 30 * 24 * 3600;

function showIn(store: OwnKeysStore): (key: OwnKey) => z.output<typeof shownKey> {
  return (key) => showKey(key, store.catalog(), store.nowMs());
}

function referenceOf(input: OperationSubject): OwnKeyReference {
  return { organizationId: ACTIVE.organizationId(input), keyId: idOf(input.ids, 'credentialId') };
}

export function listProviderCredentials(store: OwnKeysStore): Operation {
  return operation({
    id: 'listProviderCredentials',
    summary:
      'Lists the organization’s own provider keys, oldest first; byok/order has the order in which they are tried.',
    query: pageQuery,
    answer: pageOf(shownKey),
    run: async (input) => {
      const params = { ...input.query, organizationId: ACTIVE.organizationId(input) };
      return pageOrRefused(await store.listKeys(params), showIn(store));
    },
  });
}

export function getProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'getProviderCredential',
    summary: 'Shows one of the organization’s own provider keys.',
    answer: answerOf(shownKey),
    run: async (input) => shownOrRefused(await store.getKey(referenceOf(input)), showIn(store)),
  });
}

const made = z.strictObject({
  kind: addressFields.kind,
  name: keyFields.name,
  secret: secretField,
  verify: z.boolean().default(true).meta({ description: 'Ask the provider for free whether it accepts the key.' }),
  place: keyFields.place.default('before'),
  fallback: keyFields.fallback.default('inherit'),
  models: keyFields.models.default(null),
  teams: keyFields.teams.default(null),
  api_keys: keyFields.api_keys.default(null),
  users: keyFields.users.default(null),
  settings: addressFields.settings.default({}),
  base_url: addressFields.base_url.default(null),
  model_map: keyFields.model_map.default({}),
  expires_at: keyFields.expires_at.default(null),
});

export function createProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'createProviderCredential',
    summary: 'Stores an own provider key, encrypted; it is used from the next second on.',
    body: made,
    answer: answerOf(shownKey),
    status: 201,
    run: async (input) => {
      const { body } = input;
      const organizationId = ACTIVE.organizationId(input);
      const own = await allowedProvider(store, organizationId, {
        kind: body.kind,
        settings: body.settings,
        baseUrl: body.base_url,
      });
      if ('kind' in own) return own;
      const unrated = refuseUnrated(store, own.fee, { kind: body.kind, modelMap: body.model_map });
      if (unrated !== null) return unrated;
      const verdict = body.verify ? await verdictOf(store, own.found, body.secret) : UNASKED;
      if ('kind' in verdict) return verdict;
      const wanted = {
        organizationId,
        kind: body.kind,
        name: body.name,
        secret: body.secret,
        givenFor: destinationOf(own.found.provider),
        place: body.place,
        fallback: body.fallback,
        models: body.models,
        teams: body.teams,
        apiKeys: body.api_keys,
        users: body.users,
        settings: body.settings,
        baseUrl: body.base_url,
        modelMap: body.model_map,
        expiresAtMs: momentOf(body.expires_at),
        verdict,
      };
      return shownOrRefused(await store.createKey(actorOf(input.principal), wanted), showIn(store));
    },
  });
}

const UNASKED: KeyVerdict = { state: 'unverified', reason: null };

/** Nothing is sent anywhere for an organization that may not have such a key. */
async function allowedProvider(
  store: OwnKeysStore,
  organizationId: string,
  { kind, ...address }: KeyAddress & { readonly kind: string },
): Promise<{ readonly found: OwnProvider; readonly fee: ByokFee | null } | Refusal> {
  const settings = await store.getSettings(organizationId);
  if (isRefused(settings)) return { kind: 'not_found' };
  if (!settings.enabled) return { kind: 'byok_disabled' };
  const found = ownProvider(store.catalog(), kind, address);
  if (isKeyProblem(found) && found.field === 'kind') return refuseField(found);
  if (!isOpen(kind, settings)) return { kind: 'byok_kind_not_allowed' };
  if (isKeyProblem(found)) return refuseField(found);
  const reason = store.addressProblem(found);
  return reason === null ? { found, fee: settings.fee } : refuseField({ field: 'base_url', reason });
}

/**
 * A fee that is a share of a price needs a price: that of the model that is named at the provider, for whatever public
 * id.
 */
function refuseUnrated(
  store: OwnKeysStore,
  fee: ByokFee | null,
  key: Pick<OwnKey, 'kind' | 'modelMap'>,
): Refusal | null {
  const name = unratedInMap(key, store.catalog().models, fee);
  if (name === null) return null;
  const reason = `it names "${name}", which has no price in the catalog that the platform's fee could be a share of`;
  return { kind: 'invalid_field', field: 'model_map', reason };
}

function refuseField({ field, reason }: { field: string; reason: string }): Refusal {
  return { kind: 'invalid_field', field, reason: `it ${reason}` };
}

async function verdictOf(store: OwnKeysStore, own: OwnProvider, secret: string): Promise<KeyVerdict | Refusal> {
  const verdict = await store.verify(own, secret);
  if (verdict === null) return { kind: 'key_rejected', why: 'silent' };
  return verdict.state === 'invalid' ? { kind: 'key_rejected', why: 'refused' } : verdict;
}

const changed = z.strictObject({
  ...Object.fromEntries(Object.entries(keyFields).map(([name, field]) => [name, field.optional()])),
  enabled: z.boolean().optional().meta({ description: 'Whether the key is used at all.' }),
}) as z.ZodType<Partial<z.output<z.ZodObject<typeof keyFields>>> & { enabled?: boolean }>;

export function updateProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'updateProviderCredential',
    summary:
      'Changes what an own provider key is used for, or turns it off. Its address stays: a secret goes where it was ' +
      'given for.',
    body: changed,
    answer: answerOf(shownKey),
    run: async (input) => {
      const reference = referenceOf(input);
      const changed = changeOf(input.body);
      const unrated =
        changed.modelMap === undefined ? null : await refuseChangedMap(store, reference, changed.modelMap);
      if (unrated !== null) return unrated;
      return shownOrRefused(await store.updateKey(actorOf(input.principal), reference, changed), showIn(store));
    },
  });
}

async function refuseChangedMap(
  store: OwnKeysStore,
  reference: OwnKeyReference,
  modelMap: OwnKey['modelMap'],
): Promise<Refusal | null> {
  const [key, settings] = [await store.getKey(reference), await store.getSettings(reference.organizationId)];
  // The change itself finds out that a key or an organization does not exist.
  return isRefused(key) || isRefused(settings)
    ? null
    : refuseUnrated(store, settings.fee, { kind: key.kind, modelMap });
}

function changeOf(body: z.output<typeof changed>): OwnKeyChange {
  const { api_keys, model_map, expires_at, enabled, ...same } = body;
  const change = {
    ...same,
    apiKeys: api_keys,
    modelMap: model_map,
    expiresAtMs: expires_at === undefined ? undefined : momentOf(expires_at),
    isEnabled: enabled,
  };
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as OwnKeyChange;
}

export function removeProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'removeProviderCredential',
    summary: 'Removes an own provider key and erases its secret; its name stays for the records of its requests.',
    answer: removedAnswer,
    run: async (input) =>
      shownOrRefused(await store.removeKey(actorOf(input.principal), referenceOf(input)), (done) => done),
  });
}

export function verifyProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'verifyProviderCredential',
    summary: 'Asks the provider whether it accepts the key, and sets the key’s state by the answer.',
    answer: answerOf(shownKey),
    run: async (input) => {
      const reference = referenceOf(input);
      const opened = await store.openKey(reference);
      if (isRefused(opened)) return shownOrRefused(opened, showIn(store));
      const own = await allowedProvider(store, reference.organizationId, opened.key);
      if ('kind' in own) return own;
      if (secretNeededFor(opened.key, own.found) !== null) return { kind: 'key_rejected', why: 'given_for_another' };
      const verdict = await store.verify(own.found, opened.secret);
      if (verdict === null) return { kind: 'key_rejected', why: 'silent' };
      const found = { verdict, generation: opened.generation };
      const recorded = await store.recordVerdict(actorOf(input.principal), reference, found);
      if (!isRefused(recorded) && verdict.state === 'invalid') return { kind: 'key_rejected', why: 'refused' };
      return shownOrRefused(recorded, showIn(store));
    },
  });
}

const rotation = z.strictObject({
  secret: secretField,
  verify: z.boolean().default(true),
  overlap_seconds: z
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .max(OVERLAP_SECONDS_MAX, `must be at most ${OVERLAP_SECONDS_MAX}`)
    .default(0)
    .meta({ description: 'How long the previous secret is tried if the new one is refused.' }),
});

export function rotateProviderCredential(store: OwnKeysStore): Operation {
  return operation({
    id: 'rotateProviderCredential',
    summary:
      'Gives an own provider key another secret, which is used at once, and for what its provider is now; the secret ' +
      'before is not tried where that is another address.',
    body: rotation,
    answer: answerOf(shownKey),
    run: async (input) => {
      const { secret, verify, overlap_seconds: overlapSeconds } = input.body;
      const reference = referenceOf(input);
      const key = await store.getKey(reference);
      if (isRefused(key)) return shownOrRefused(key, showIn(store));
      const own = await allowedProvider(store, reference.organizationId, key);
      if ('kind' in own) return own;
      const verdict = verify ? await verdictOf(store, own.found, secret) : UNASKED;
      if ('kind' in verdict) return verdict;
      const rotated = { secret, givenFor: destinationOf(own.found.provider), overlapSeconds, verdict };
      return shownOrRefused(await store.rotateKey(actorOf(input.principal), reference, rotated), showIn(store));
    },
  });
}
