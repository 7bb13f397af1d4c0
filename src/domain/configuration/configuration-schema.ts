// The shape of the configuration file: every key it may have, and how each becomes the plain data of configuration.ts.

import { z } from 'zod';
import { API_NAMES, APIS, MODEL_KIND_NAMES, MODEL_KINDS } from '../models/apis.ts';
import type { Provider, ProviderTimeouts } from '../models/catalog.ts';
import { parsePricePerMillion, parseUsd } from '../money/parse-usd.ts';
import type { PicoUsd } from '../money/pico-usd.ts';
import { ZERO_PICO_USD } from '../money/pico-usd.ts';
import { policyDefinition } from '../routing/policy-definition.ts';
import { DEFAULT_POLICY } from '../routing/routing-policy.ts';
import { webhookSecretProblem } from '../webhooks/webhook-signature.ts';
import { webhookUrlProblem } from '../webhooks/webhook-url.ts';
import {
  type Configuration,
  type ConfiguredModel,
  type ConfiguredOrganization,
  type ConfiguredRoutingPolicy,
  SECTION_NAMES,
  type SectionName,
} from './configuration.ts';
import { modelNameSchema as modelName, slugSchema as slug } from './name-schemas.ts';

const name = (pattern: RegExp, mustBe: string) => z.string().regex(pattern, mustBe);

const label = name(/^\P{C}{1,200}$/u, 'must be 1 to 200 characters');
const email = name(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address');
/** An API key is sent as part of a header. */
const headerValue = name(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces');
const keySecret = name(/^[\x21-\x7e]{1,256}$/, 'must be 1 to 256 visible ASCII characters without spaces');
const tokens = z.int('must be a whole number').min(1, 'must be at least 1');

function money(parse: (text: string) => PicoUsd | null, mustBe: string) {
  return z.string(mustBe).transform((text, context): PicoUsd => {
    const amount = parse(text);
    if (amount !== null) return amount;
    context.issues.push({ code: 'custom', message: mustBe, input: text });
    return z.NEVER;
  });
}

const pricePerMillion = money(
  parsePricePerMillion,
  'must be USD per million tokens as a decimal string in quotes with at most 6 decimals, such as "1.25"',
);
const usd = money(parseUsd, 'must be USD as a decimal string in quotes, such as "25.00"');

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

const provider = z
  .strictObject({
    id: slug,
    base_url: baseUrl,
    api_key: headerValue.optional(),
    auth: z.enum(['bearer', 'x-api-key', 'none']).default('bearer'),
    on_disconnect: z.enum(['cancel', 'drain']).default('cancel'),
    stored_objects: z.literal('shared', 'must be shared').optional(),
    timeouts: timeouts.optional(),
  })
  .check(({ value, issues }) => {
    if (value.auth === 'none' && value.api_key !== undefined)
      issues.push({ code: 'custom', path: ['api_key'], message: 'is not sent with auth: none', input: value });
    if (value.auth !== 'none' && value.api_key === undefined)
      issues.push({ code: 'custom', path: ['api_key'], message: 'is missing', input: value });
  })
  .transform(
    (found): Provider => ({
      id: found.id,
      baseUrl: found.base_url,
      apiKey: found.api_key ?? '',
      auth: found.auth,
      onDisconnect: found.on_disconnect,
      ...(found.stored_objects === undefined ? {} : { storedObjects: found.stored_objects }),
      ...(found.timeouts === undefined ? {} : { timeouts: found.timeouts }),
    }),
  );

const price = z.strictObject({
  input: pricePerMillion.optional(),
  cached_input: pricePerMillion.optional(),
  cache_write: pricePerMillion.optional(),
  cache_write_1h: pricePerMillion.optional(),
  output: pricePerMillion.optional(),
  image: usd.optional(),
});

const deployment = z.strictObject({
  provider: z.string(),
  model: modelName,
  apis: z.array(z.enum(API_NAMES)).min(1, 'must name at least one API'),
  price: price.optional(),
  stream_usage: z.literal('request', 'must be request').optional(),
  via: z.literal('logprobs', 'must be logprobs').optional(),
});

const model = z
  .strictObject({
    id: modelName,
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
  })
  .check((context) => {
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
      for (const needed of found.price === undefined ? [] : MODEL_KINDS[kind].neededPrices) {
        if (found.price?.[needed] === undefined)
          complain(['served_by', index, 'price'], `a model of kind ${kind} needs the price "${needed}"`);
      }
    }
  })
  .transform(
    (found): ConfiguredModel => ({
      id: found.id,
      displayName: found.display_name ?? found.id,
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
        price:
          entry.price === undefined
            ? null
            : {
                input: entry.price.input ?? null,
                cachedInput: entry.price.cached_input ?? null,
                cacheWrite: entry.price.cache_write ?? null,
                ...(entry.price.cache_write_1h === undefined ? {} : { hourCacheWrite: entry.price.cache_write_1h }),
                output: entry.price.output ?? (MODEL_KINDS[found.kind].outputIsFree ? ZERO_PICO_USD : null),
                image: entry.price.image ?? null,
              },
        ...(entry.stream_usage === undefined ? {} : { streamUsage: entry.stream_usage }),
        ...(entry.via === undefined ? {} : { via: entry.via }),
      })),
    }),
  );

const routingPolicy = policyDefinition
  .extend({ name: slug })
  .transform(({ name: policyName, ...definition }): ConfiguredRoutingPolicy => ({ name: policyName, definition }));

const limit = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.enum(['requests_per_minute', 'tokens_per_minute', 'concurrent_requests']),
    limit: z.int('must be a whole number').min(0, 'must not be negative').transform(BigInt),
    model: z.exactOptional(modelName),
  }),
  z.strictObject({
    kind: z.literal('budget'),
    window: z.enum(['hour', 'day', 'week', 'month']),
    limit: usd,
    model: z.exactOptional(modelName),
  }),
]);

/**
 * The schema accepts plain http: whether it may be called is a setting of the installation, checked at each delivery.
 */
const webhook = z.strictObject({
  url: z.string().superRefine((text, context) => {
    const problem = webhookUrlProblem(text, { allowHttp: true });
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
  secret: z.string().superRefine((text, context) => {
    const problem = webhookSecretProblem(text);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
  active: z.boolean().nullable().default(null),
});

const organization = z
  .strictObject({
    slug,
    display_name: label.optional(),
    billing: z.enum(['prepaid', 'none']),
    opening_credit: usd.optional(),
    // An organization that names no policy routes by the platform's default (spec 4.11).
    auto_routing: z.strictObject({ policy: slug.nullable().default(DEFAULT_POLICY) }).optional(),
    limits: z.array(limit).optional(),
    teams: z.array(z.strictObject({ slug })).default([]),
    users: z
      .array(
        z.strictObject({
          email,
          role: z.enum(['owner', 'admin', 'member']).nullable().default(null),
          teams: z.array(z.string()).default([]),
        }),
      )
      .default([]),
    keys: z
      .array(
        z.strictObject({
          name: label,
          team: z.string().optional(),
          user: z.string().optional(),
          secret: keySecret.optional(),
        }),
      )
      .optional(),
    webhook: webhook.optional(),
  })
  .check((context) => {
    if (context.value.billing === 'none' && context.value.opening_credit !== undefined) {
      context.issues.push({
        code: 'custom',
        path: ['opening_credit'],
        message: 'needs billing: prepaid',
        input: context.value,
      });
    }
  })
  .transform(
    (found): ConfiguredOrganization => ({
      slug: found.slug,
      displayName: found.display_name ?? null,
      billing: found.billing,
      openingCredit: found.opening_credit ?? null,
      autoRouting: found.auto_routing ?? null,
      limits: found.limits ?? null,
      teams: found.teams.map((team) => team.slug),
      users: found.users,
      keys:
        found.keys?.map((key) => ({
          name: key.name,
          team: key.team ?? null,
          userEmail: key.user ?? null,
          secret: key.secret ?? null,
        })) ?? null,
      webhook: found.webhook ?? null,
    }),
  );

export const configurationSchema = z
  .strictObject({
    providers: z.array(provider).optional(),
    models: z.array(model).optional(),
    routing_policies: z.array(routingPolicy).optional(),
    organizations: z.array(organization).optional(),
  })
  .refine((found) => sectionsOf(found).length > 0, `the file is empty: it has none of ${SECTION_NAMES.join(', ')}`)
  .transform(
    (found): Configuration => ({
      sections: sectionsOf(found),
      providers: found.providers ?? [],
      models: found.models ?? [],
      routingPolicies: found.routing_policies ?? [],
      organizations: found.organizations ?? [],
    }),
  );

function sectionsOf(found: Readonly<Partial<Record<SectionName, unknown>>>): SectionName[] {
  return SECTION_NAMES.filter((name) => found[name] !== undefined);
}
