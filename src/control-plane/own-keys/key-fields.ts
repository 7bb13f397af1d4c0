// The fields of own provider keys: what may be said of one, and how it is shown, never with its secret.

import { z } from 'zod';
import { entriesAtMost } from '../../domain/configuration/schema/entries-at-most.ts';
import type { Catalog } from '../../domain/models/catalog.ts';
import { KEY_FALLBACKS, KEY_PLACES, type OwnKey, SHOWN_KEY_STATES } from '../../domain/own-keys/own-key.ts';
import { shownState } from '../../domain/own-keys/shown-state.ts';
import {
  idField,
  labelField,
  modelNameField,
  momentField,
  showMoment,
  showMomentOrNull,
  shownId,
  shownMoment,
} from '../identity/fields.ts';

const LIST_MAX = 200;
const MAP_MAX = 200;

const models = z.array(modelNameField).max(LIST_MAX).nullable();
const ids = z.array(idField).max(LIST_MAX).nullable();

/** A secret is sent in a header, so it has no space and no control character. */
export const secretField = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces')
  .meta({ description: 'The key itself; no answer shows it again.' });

export const keyFields = {
  name: labelField,
  place: z
    .enum(KEY_PLACES)
    .meta({ description: 'Whether it is tried before the service’s own deployments, or after them.' }),
  fallback: z
    .enum(KEY_FALLBACKS)
    .meta({ description: 'Whether the service may serve, and charge, where the key cannot.' }),
  models: models.meta({ description: 'Public ids of the models that the key is for; null: every model.' }),
  teams: ids.meta({ description: 'Teams that the key is for; null: everybody.' }),
  api_keys: ids.meta({ description: 'Inference keys that the key is for; null: all.' }),
  users: ids.meta({ description: 'People whose inference keys the key is for; null: everybody.' }),
  model_map: entriesAtMost(MAP_MAX, z.record(modelNameField, modelNameField), 'models').meta({
    description: 'The provider’s own model, such as a deployment, by public id.',
  }),
  expires_at: momentField.nullable(),
};

export const addressFields = {
  kind: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'must be one of byok-templates')
    .meta({ description: 'One of the kinds that byok-templates lists.' }),
  settings: entriesAtMost(MAP_MAX, z.record(z.string().regex(/^[a-z_]{1,40}$/), z.string().max(200))).meta({
    description: 'The settings that the template of the kind names.',
  }),
  base_url: z.string().nullable().meta({ description: 'For kind custom: an https:// address.' }),
};

export const shownKey = z
  .object({
    id: shownId,
    kind: z.string(),
    ...keyFields,
    name: z.string(),
    label: z.string().nullable().meta({ description: 'The end of a long secret.' }),
    fingerprint: z.string().meta({ description: 'Equal for equal secrets.' }),
    position: z.int(),
    settings: z.record(z.string(), z.string()),
    base_url: z.string().nullable(),
    state: z.enum(SHOWN_KEY_STATES),
    state_reason: z.string().nullable(),
    state_until: shownMoment.nullable(),
    verified_at: shownMoment.nullable(),
    last_used_at: shownMoment.nullable(),
    expires_at: shownMoment.nullable(),
    rotated_at: shownMoment.nullable(),
    previous_secret_until: shownMoment
      .nullable()
      .meta({ description: 'Until when the previous secret is tried if the present one is refused.' }),
    created_at: shownMoment,
  })
  .meta({ id: 'ProviderCredential' });

export function showKey(key: OwnKey, catalog: Pick<Catalog, 'models'>, nowMs: number): z.output<typeof shownKey> {
  const { state, reason, untilMs } = shownState(key, catalog, nowMs);
  return {
    id: key.id,
    kind: key.kind,
    name: key.name,
    label: key.label,
    fingerprint: key.fingerprint,
    place: key.place,
    position: key.position,
    fallback: key.fallback,
    models: list(key.models),
    teams: list(key.teams),
    api_keys: list(key.apiKeys),
    users: list(key.users),
    settings: { ...key.settings },
    base_url: key.baseUrl,
    model_map: { ...key.modelMap },
    state,
    state_reason: reason,
    state_until: showMomentOrNull(untilMs),
    verified_at: showMomentOrNull(key.verifiedAtMs),
    last_used_at: showMomentOrNull(key.lastUsedAtMs),
    expires_at: showMomentOrNull(key.expiresAtMs),
    rotated_at: showMomentOrNull(key.rotatedAtMs),
    previous_secret_until:
      key.previousUntilMs === null || key.previousUntilMs <= nowMs ? null : showMoment(key.previousUntilMs),
    created_at: showMoment(key.createdAtMs),
  };
}

function list(values: readonly string[] | null): string[] | null {
  return values === null ? null : [...values];
}

export function momentOf(text: string | null | undefined): number | null {
  return text == null ? null : Date.parse(text);
}
