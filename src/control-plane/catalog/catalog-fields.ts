// How providers, models and prices of the catalog are shown to platform administrators: in the words of the
// configuration file, without any secret.

import { z } from 'zod';
import type { CatalogState } from '../../domain/configuration/difference.ts';
import type { CatalogEntry } from '../../domain/configuration/find-warnings.ts';
import { requestFields } from '../../domain/configuration/schema/request-settings.ts';
import { API_NAMES, MODEL_KIND_NAMES } from '../../domain/models/apis.ts';
import { shownAmounts, shownTerms } from '../openapi/price-schemas.ts';

const version = z.int().meta({ description: 'Grows with every change, and the next change names it.' });
const milliseconds = z.int().optional();

export const shownPrice = z
  .object({ ...shownAmounts, ...shownTerms })
  .meta({ id: 'CatalogPrice', description: 'Decimal strings: dollars per million tokens, `image` per image.' });

export const shownProvider = z
  .object({
    id: z.string(),
    version,
    base_url: z.string(),
    auth: z.union([z.enum(['bearer', 'x-api-key', 'none']), z.object({ header: z.string() })]),
    has_key: z.boolean().meta({ description: 'The key itself is never shown.' }),
    on_disconnect: z.enum(['cancel', 'drain']),
    stored_objects: z.literal('shared').optional(),
    timeouts: z
      .object({
        connect_ms: milliseconds,
        first_byte_ms: milliseconds,
        idle_ms: milliseconds,
        total_ms: milliseconds,
      })
      .optional(),
    ...requestFields,
  })
  .meta({ id: 'CatalogProvider' });

export const shownModel = z
  .object({
    id: z.string(),
    version,
    display_name: z.string(),
    kind: z.enum(MODEL_KIND_NAMES),
    aliases: z.array(z.string()),
    context_length: z.int().optional(),
    max_output_tokens: z.int().optional(),
    max_completion_tokens_cap: z.int().optional(),
    attachment_tokens_max: z.int().optional(),
    tokenizer: z.string(),
    active: z.boolean(),
    served_by: z.array(
      z.object({
        provider: z.string(),
        model: z.string(),
        apis: z.array(z.enum(API_NAMES)),
        price: z.union([shownPrice, z.array(shownPrice)]).optional(),
        stream_usage: z.literal('request').optional(),
        via: z.literal('logprobs').optional(),
      }),
    ),
  })
  .meta({ id: 'CatalogModel' });

const warnings = z
  .array(z.string())
  .meta({ description: 'Settings that are allowed but would cause trouble for users.' });
export const changedProvider = shownProvider.extend({ warnings }).meta({ id: 'ChangedCatalogProvider' });
export const changedModel = shownModel.extend({ warnings }).meta({ id: 'ChangedCatalogModel' });

export function showProvider({ id, version: present, fields }: CatalogState): z.output<typeof shownProvider> {
  const { api_key: key, ...others } = fields;
  const shown = others as unknown as Omit<z.output<typeof shownProvider>, 'id' | 'version' | 'has_key'>;
  return { id, version: present, ...shown, has_key: key !== undefined };
}

export function showModel({ id, version: present, fields }: CatalogState): z.output<typeof shownModel> {
  const shown = fields as unknown as Omit<z.output<typeof shownModel>, 'id' | 'version'>;
  // Postgres leaves an empty list out.
  return { id, version: present, ...shown, aliases: shown.aliases ?? [] };
}

export function showChangedProvider({ state, warnings: found }: CatalogEntry): z.output<typeof changedProvider> {
  return { ...showProvider(state), warnings: [...found] };
}

export function showChangedModel({ state, warnings: found }: CatalogEntry): z.output<typeof changedModel> {
  return { ...showModel(state), warnings: [...found] };
}
