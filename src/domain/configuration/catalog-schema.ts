// The shape of providers and models, in the configuration file and in requests, and how each becomes plain data.

import { z } from 'zod';
import { API_NAMES, APIS, MODEL_KIND_NAMES } from '../models/apis.ts';
import type { Provider, ProviderTimeouts } from '../models/catalog.ts';
import type { ConfiguredModel, ProviderChange } from './configuration.ts';
import { labelSchema as label, modelNameSchema as modelName, slugSchema as slug } from './name-schemas.ts';
import { priceProblem, priceSchema, readPrice } from './price-schema.ts';

/** An API key is sent as part of a header. */
const headerValue = z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces');
/** The version that a change in a request was made from, so that nobody's change is overwritten unseen. */
export const basedOn = z
  .int('must be a whole number')
  .min(0, 'must not be negative')
  .optional()
  .meta({ description: 'The version that was read; needed for what exists. Another present version is 409.' });
const tokens = z.int('must be a whole number').min(1, 'must be at least 1');

/** Origin and optional path; the dialects' paths are appended, so it ends without a slash. */
const baseUrl = z.string().transform((text, context): string => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' && url.username === '')
    return text.replace(/\/+$/, '');
  context.issues.push({
    code: 'custom',
    message: 'must be an http:// or https:// address without query, fragment or credentials',
    input: text,
  });
  return z.NEVER;
});

const DAY_MS = 86_400_000;
const milliseconds = z
  .int('must be a whole number of milliseconds')
  .min(1, 'must be at least 1')
  .max(DAY_MS, 'must be at most a day')
  .optional();

const timeouts = z
  .strictObject({
    connect_ms: milliseconds,
    first_byte_ms: milliseconds,
    idle_ms: milliseconds,
    total_ms: milliseconds,
  })
  .transform(
    (found): ProviderTimeouts => ({
      ...(found.connect_ms === undefined ? {} : { connectMs: found.connect_ms }),
      ...(found.first_byte_ms === undefined ? {} : { firstByteMs: found.first_byte_ms }),
      ...(found.idle_ms === undefined ? {} : { idleMs: found.idle_ms }),
      ...(found.total_ms === undefined ? {} : { totalMs: found.total_ms }),
    }),
  );

const providerFields = {
  base_url: baseUrl,
  api_key: headerValue.optional(),
  auth: z.enum(['bearer', 'x-api-key', 'none']).default('bearer'),
  on_disconnect: z.enum(['cancel', 'drain']).default('cancel'),
  stored_objects: z.literal('shared', 'must be shared').optional(),
  timeouts: timeouts.optional(),
};
const providerRules = z.strictObject(providerFields);
type ProviderFields = z.output<typeof providerRules>;

/** What is wrong with the key; null: nothing. */
function keyProblem({ auth, api_key: key }: ProviderFields): string | null {
  return auth === 'none' && key !== undefined ? 'is not sent with auth: none' : null;
}

function readProvider(id: string, found: ProviderFields): ProviderChange {
  return {
    id,
    baseUrl: found.base_url,
    apiKey: found.api_key ?? null,
    auth: found.auth,
    onDisconnect: found.on_disconnect,
    ...(found.stored_objects === undefined ? {} : { storedObjects: found.stored_objects }),
    ...(found.timeouts === undefined ? {} : { timeouts: found.timeouts }),
  };
}

/** A provider in the configuration file, which always has the key. */
export const configuredProvider = z
  .strictObject({ id: slug, ...providerFields })
  .check(({ value, issues }) => {
    const message = keyProblem(value) ?? (value.auth !== 'none' && value.api_key === undefined ? 'is missing' : null);
    if (message !== null) issues.push({ code: 'custom', path: ['api_key'], message, input: value });
  })
  .transform((found): Provider => ({ ...readProvider(found.id, found), apiKey: found.api_key ?? '' }));

/** A provider in a request, whose path has the id. Without `api_key` the stored one stays. */
export const requestedProvider = z
  .strictObject({ ...providerFields, version: basedOn })
  .check(({ value, issues }) => {
    const isReference = /^(\$\{|os\.environ\/)/.test(value.api_key ?? '');
    const message = isReference ? 'must be the key itself, not the name of a variable' : keyProblem(value);
    if (message !== null) issues.push({ code: 'custom', path: ['api_key'], message, input: value });
  })
  .transform(({ version, ...found }) => ({
    version: version ?? null,
    provider: (id: string) => readProvider(id, found),
  }));

const deployment = z.strictObject({
  provider: modelName,
  model: modelName,
  apis: z.array(z.enum(API_NAMES)).min(1, 'must name at least one API'),
  price: priceSchema.optional(),
  stream_usage: z.literal('request', 'must be request').optional(),
  via: z.literal('logprobs', 'must be logprobs').optional(),
});

const modelFields = {
  display_name: label.optional(),
  kind: z.enum(MODEL_KIND_NAMES).default('text'),
  aliases: z.array(modelName).default([]),
  context_length: tokens.optional(),
  max_output_tokens: tokens.optional(),
  max_completion_tokens_cap: tokens.optional(),
  attachment_tokens_max: z.int('must be a whole number').min(0, 'must not be negative').optional(),
  tokenizer: z.enum(['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base']).default('o200k_base'),
  active: z.boolean().optional(),
  served_by: z.array(deployment).min(1, 'must name at least one provider'),
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
    if (found.stream_usage !== undefined && !found.apis.includes('chat_completions')) {
      complain(['served_by', index, 'stream_usage'], 'is for chat_completions, which this entry does not serve');
    }
    if (found.via !== undefined && kind !== 'evaluation')
      complain(['served_by', index, 'via'], 'is for models of kind evaluation');
    const problem = found.price === undefined ? null : priceProblem(kind, found.price);
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
      price: entry.price === undefined ? null : readPrice(found.kind, entry.price),
      ...(entry.stream_usage === undefined ? {} : { streamUsage: entry.stream_usage }),
      ...(entry.via === undefined ? {} : { via: entry.via }),
    })),
  };
}

export const configuredModel = z
  .strictObject({ id: modelName, ...modelFields })
  .check(checkModel)
  .transform((found) => readModel(found.id, found));

/** A model in a request, whose path has the id. */
export const requestedModel = z
  .strictObject({ ...modelFields, version: basedOn })
  .check(checkModel)
  .transform(({ version, ...found }) => ({ version: version ?? null, model: (id: string) => readModel(id, found) }));
