// The catalog entry of spec 2.3 and the list that has it, for the OpenAPI document.

import { z } from 'zod';
import { API_NAMES, MODEL_KIND_NAMES } from '../../domain/models/apis.ts';
import { shownAmounts, shownTerms } from './price-schemas.ts';

const pricing = z.object({ currency: z.literal('USD'), ...shownAmounts, ...shownTerms }).meta({
  id: 'ModelPricing',
  description: 'Decimal strings: dollars per million tokens, `image` per image. A price that does not exist is absent.',
});

export const model = z
  .object({
    id: z.string().meta({ description: 'What `model` of a request names: the model’s id, or an alias.' }),
    object: z.literal('model'),
    type: z.literal('model'),
    created: z.int().meta({ description: 'Seconds since 1970.' }),
    created_at: z.iso.datetime(),
    display_name: z.string(),
    kind: z.enum(MODEL_KIND_NAMES),
    context_length: z
      .int()
      .nullable()
      .meta({ description: 'In tokens. For the virtual model: the smallest of its models.' }),
    max_output_tokens: z.int().nullable(),
    apis: z.array(z.enum(API_NAMES)).meta({ description: 'The endpoints that serve it.' }),
    pricing: pricing.nullable().meta({ description: 'The prices for all `apis` that are not in `pricing_by_api`.' }),
    pricing_by_api: z
      .partialRecord(z.enum(API_NAMES), pricing.nullable())
      .optional()
      .meta({ description: 'The prices of those `apis` that differ from `pricing`.' }),
    stream_usage: z.literal('request').optional().meta({
      description: 'Usage is asked for in every Chat Completions stream, and left out where the client did not ask.',
    }),
    alias: z.string().optional().meta({ description: 'With `X-Provider-Data: true`: an alias of the canonical id.' }),
    owned_by: z.string(),
    provider: z.string().optional().meta({ description: 'With `X-Provider-Data: true`.' }),
  })
  .meta({ id: 'Model' });

const typesafeModel = z.object({ name: z.string(), description: z.string(), release_date: z.iso.date() });

/** The list in a form that clients of OpenAI, Anthropic and TypeSafe all read. */
export const modelList = z
  .object({
    object: z.literal('list'),
    data: z.array(model),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.literal(false),
    models: z.array(typesafeModel).meta({ description: 'The list in the form that clients of TypeSafe read.' }),
  })
  .meta({ id: 'ModelList' });
