// The shape of models and their prices, in the configuration file and in requests, and how each becomes plain data.

import { z } from 'zod';
import { API_NAMES, APIS, MODEL_KIND_NAMES, type ModelKind } from '../../models/apis.ts';
import { STREAM_USAGE_API } from '../../models/catalog.ts';
import type { ConfiguredModel } from '../configuration.ts';
import { CONFIGURED_MAX, CONFIGURED_TOO_MANY } from './entries-at-most.ts';
import { labelSchema as label, modelNameSchema as modelName } from './name-schemas.ts';
import { type PricesFields, pricesProblem, pricesSchema, readPrices } from './price-schema.ts';

/** The version on which a change in a request is based, so that no change by somebody else is overwritten unseen. */
export const basedOn = z
  .int('must be a whole number')
  .min(0, 'must not be negative')
  .optional()
  .meta({ description: 'The version that was read; needed for what exists. Another present version is 409.' });
const tokens = z.int('must be a whole number').min(1, 'must be at least 1');

const deployment = z.strictObject({
  provider: modelName,
  model: modelName,
  apis: z.array(z.enum(API_NAMES)).min(1, 'must name at least one API').max(CONFIGURED_MAX, CONFIGURED_TOO_MANY),
  price: pricesSchema.optional(),
  stream_usage: z.literal('request', 'must be request').optional(),
  via: z.literal('logprobs', 'must be logprobs').optional(),
});

const modelFields = {
  display_name: label.optional(),
  kind: z.enum(MODEL_KIND_NAMES).default('text'),
  aliases: z.array(modelName).max(CONFIGURED_MAX, CONFIGURED_TOO_MANY).default([]),
  context_length: tokens.optional(),
  max_output_tokens: tokens.optional(),
  max_completion_tokens_cap: tokens.optional(),
  attachment_tokens_max: z.int('must be a whole number').min(0, 'must not be negative').optional(),
  tokenizer: z.enum(['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base']).default('o200k_base'),
  active: z.boolean().optional(),
  served_by: z.array(deployment).min(1, 'must name at least one provider').max(CONFIGURED_MAX, CONFIGURED_TOO_MANY),
};
const modelRules = z.strictObject(modelFields);
type ModelFields = z.output<typeof modelRules>;

function checkModel(context: { readonly value: ModelFields; readonly issues: z.core.$ZodRawIssue[] }): void {
  const { kind, served_by, max_completion_tokens_cap: cap, max_output_tokens: most } = context.value;
  const complain = (path: (string | number)[], message: string) =>
    context.issues.push({ code: 'custom', path, message, input: context.value });
  if (cap !== undefined && most !== undefined && cap > most)
    complain(['max_completion_tokens_cap'], 'must not be above max_output_tokens');
  for (const [index, found] of served_by.entries()) {
    const strange = found.apis.find((api) => APIS[api].kind !== kind);
    if (strange !== undefined)
      complain(['served_by', index, 'apis'], `a model of kind ${kind} is not served on ${strange}`);
    if (found.stream_usage !== undefined && !found.apis.includes(STREAM_USAGE_API)) {
      complain(['served_by', index, 'stream_usage'], `is for ${STREAM_USAGE_API}, which this entry does not serve`);
    }
    if (found.via !== undefined && kind !== 'evaluation')
      complain(['served_by', index, 'via'], 'is for models of kind evaluation');
    const problem = found.price === undefined ? null : pricesProblem(kind, found.price);
    if (problem !== null) complain(['served_by', index, 'price'], problem);
  }
}

function readModel(id: string, found: ModelFields): ConfiguredModel {
  return {
    id,
    displayName: found.display_name ?? id,
    kind: found.kind,
    aliases: found.aliases,
    contextLength: found.context_length ?? null,
    maxOutputTokens: found.max_output_tokens ?? null,
    maxCompletionTokensCap: found.max_completion_tokens_cap ?? null,
    attachmentTokensMax: found.attachment_tokens_max ?? null,
    tokenizer: found.tokenizer,
    active: found.active ?? null,
    servedBy: found.served_by.map((entry) => ({
      provider: entry.provider,
      providerModel: entry.model,
      apis: entry.apis,
      ...pricesOf(found.kind, entry.price),
      ...(entry.stream_usage === undefined ? {} : { streamUsage: entry.stream_usage }),
      ...(entry.via === undefined ? {} : { via: entry.via }),
    })),
  };
}

function pricesOf(
  kind: ModelKind,
  found: PricesFields | undefined,
): Pick<ConfiguredModel['servedBy'][number], 'price' | 'furtherPrices'> {
  const [price = null, ...furtherPrices] = found === undefined ? [] : readPrices(kind, found);
  return furtherPrices.length === 0 ? { price } : { price, furtherPrices };
}

export const configuredModel = z
  .strictObject({ id: modelName, ...modelFields })
  .check(checkModel)
  .transform((found) => readModel(found.id, found));

/** A model in a request; its id is in the request's path. */
export const requestedModel = z
  .strictObject({ ...modelFields, version: basedOn })
  .check(checkModel)
  .transform(({ version, ...found }) => ({ version: version ?? null, model: (id: string) => readModel(id, found) }));
