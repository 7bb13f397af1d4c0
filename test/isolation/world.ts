// The installation that a run attacks: its tenants with their keys, its providers and models, and its configuration
// file.

import { markOf } from './marks.ts';

/** The number of plain tenants. A mark names its tenant by two digits. */
export const TENANTS = 6;
/** The number of tenants with a wallet from which nothing was leased, each for one look-up of a lease. */
export const COLD_TENANTS = 32;
export const FIRST_COLD_TENANT = 40;

/** The first tenant with own provider keys for every provider (own-keys.ts). */
const FIRST_OWN_TENANT = 10;
const OWN_TENANTS_COUNT = 24;
export const OWN_TENANTS: readonly number[] = Array.from(
  { length: OWN_TENANTS_COUNT },
  (_, index) => FIRST_OWN_TENANT + index,
);

export function hasOwnKeys(tenant: number): boolean {
  return tenant >= FIRST_OWN_TENANT && tenant < FIRST_OWN_TENANT + OWN_TENANTS_COUNT;
}

/** The first tenant with a guardrail policy that changes texts (planted.ts). */
const FIRST_GUARDED_TENANT = 80;
const GUARDED_TENANTS_COUNT = 12;
export const GUARDED_TENANTS: readonly number[] = Array.from(
  { length: GUARDED_TENANTS_COUNT },
  (_, index) => FIRST_GUARDED_TENANT + index,
);

export function hasPolicy(tenant: number): boolean {
  return tenant >= FIRST_GUARDED_TENANT && tenant < FIRST_GUARDED_TENANT + GUARDED_TENANTS_COUNT;
}

export const PROVIDERS = [
  { id: 'plain-a', isTls: false, auth: 'bearer', onDisconnect: 'cancel' },
  { id: 'plain-b', isTls: false, auth: 'x-api-key', onDisconnect: 'drain' },
  { id: 'tls-a', isTls: true, auth: 'bearer', onDisconnect: 'cancel' },
  { id: 'tls-b', isTls: true, auth: 'x-api-key', onDisconnect: 'drain' },
  { id: 'judge', isTls: false, auth: 'bearer', onDisconnect: 'cancel' },
] as const;
export type ProviderId = (typeof PROVIDERS)[number]['id'];

export function providerKeyOf(id: ProviderId): string {
  return `sk-of-${id}-0123456789`;
}

export interface IsolationModel {
  readonly id: string;
  readonly kind: 'text' | 'image' | 'evaluation';
  readonly asksForUsage: boolean;
  /** The model's deployments. Names at the providers differ in length, so that bodies move in their buffers. */
  readonly deployments: readonly { readonly provider: ProviderId; readonly model: string }[];
}

const text = (id: string, ...deployments: IsolationModel['deployments']): IsolationModel => ({
  id,
  kind: 'text',
  asksForUsage: false,
  deployments,
});

export const MODELS: readonly IsolationModel[] = [
  text(
    'iso/pp',
    { provider: 'plain-a', model: 'pp-with-a-name-much-longer-than-the-public-one' },
    { provider: 'plain-b', model: 'b' },
  ),
  text('iso/pt', { provider: 'plain-a', model: 'pt' }, { provider: 'tls-a', model: 'pt-at-the-provider-behind-tls' }),
  text('iso/tp', { provider: 'tls-a', model: 'tp-a' }, { provider: 'plain-b', model: 'tp-b-a-little-longer' }),
  text('iso/tt', { provider: 'tls-b', model: 'tt-b' }, { provider: 'tls-a', model: 'a' }),
  // Providers pause this model for a second.
  text('iso/cool', { provider: 'plain-b', model: 'cool-b' }, { provider: 'tls-b', model: 'cool-of-tls' }),
  {
    ...text(
      'iso/ask',
      { provider: 'plain-b', model: 'ask-b' },
      { provider: 'plain-a', model: 'ask-a-long-name-of-a-model' },
    ),
    asksForUsage: true,
  },
  text('iso/light', { provider: 'plain-a', model: 'light' }, { provider: 'tls-b', model: 'light-of-tls' }),
  text('iso/strong', { provider: 'tls-a', model: 'strong-model' }, { provider: 'plain-b', model: 'strong-model-b' }),
  {
    id: 'iso/image',
    kind: 'image',
    asksForUsage: false,
    deployments: [
      { provider: 'plain-a', model: 'image-at-plain-a' },
      { provider: 'tls-b', model: 'i' },
    ],
  },
  { id: 'iso/eval', kind: 'evaluation', asksForUsage: false, deployments: [{ provider: 'plain-b', model: 'eval-b' }] },
];

/** A key for a tenant's own requests, which every gateway knows after the first one. */
export function warmKey(tenant: number, second: boolean): string {
  return `tg-iso-${markOf(tenant, 'c', 0)}-${second ? 'second' : 'first'}-${'k'.repeat(20)}`;
}

/** A key for one request, which no gateway knows before. */
export function coldKey(tenant: number, index: number): string {
  return `tg-iso-${markOf(tenant, 'c', 0)}-cold-${index}-${'k'.repeat(20)}`;
}

export function slugOf(tenant: number): string {
  return `tenant-${tenant}`;
}

/** What the configuration says of tenants that have more than a key. */
export interface TenantConfiguration {
  /** The part of the configuration about a tenant's own provider keys. */
  readonly ownKeysOf: (tenant: number) => object;
  readonly policies: readonly object[];
  /** The part of the configuration that assigns a tenant's policy. */
  readonly guardrailsOf: (tenant: number) => object;
}

/** Builds the configuration file. `urlOf` returns the address of a provider. JSON is valid YAML. */
export function isolationConfiguration(
  urlOf: (provider: ProviderId) => string,
  { ownKeysOf, policies, guardrailsOf }: TenantConfiguration,
): string {
  const price = { text: { input: '0.01', output: '0.01' }, image: { image: '0.0001' }, evaluation: { input: '0.01' } };
  const apis = {
    text: ['chat_completions', 'responses', 'messages', 'count_tokens'],
    image: ['images'],
    evaluation: ['systemone'],
  };
  return JSON.stringify({
    providers: PROVIDERS.map(({ id, auth, onDisconnect }) => ({
      id,
      base_url: urlOf(id),
      api_key: providerKeyOf(id),
      auth,
      on_disconnect: onDisconnect,
    })),
    models: [
      ...MODELS.map(({ id, kind, asksForUsage, deployments }) => ({
        id,
        kind,
        context_length: 100_000_000,
        ...(kind === 'text' ? { max_completion_tokens_cap: 64 } : {}),
        served_by: deployments.map(({ provider, model }) => ({
          provider,
          model,
          apis: apis[kind],
          price: price[kind],
          ...(asksForUsage ? { stream_usage: 'request' } : {}),
        })),
      })),
      {
        id: 'iso/judge',
        kind: 'evaluation',
        served_by: [{ provider: 'judge', model: 'judge-1', apis: ['systemone'], price: price.evaluation }],
      },
    ],
    routing_policies: [
      {
        name: 'default',
        classifier: { model: 'iso/judge', timeout_ms: 5_000, confidence_floor: 0.6 },
        tiers: [
          { name: 'light', description: 'Easy.', models: [{ id: 'iso/light' }] },
          { name: 'strong', description: 'Hard.', models: [{ id: 'iso/strong' }] },
        ],
        fallback_tier: 'strong',
      },
    ],
    // The policy finds nothing: screened text must keep its bytes.
    guardrails: [
      {
        name: 'watched',
        rules: [{ id: 'never', words: ['qqzznever'], detect: ['iban'], stage: 'input', action: 'mask' }],
      },
      ...policies,
    ],
    organizations: [
      ...Array.from({ length: TENANTS }, (_, index) => organization(index + 1)),
      ...OWN_TENANTS.map((tenant) => ({ ...organization(tenant), ...ownKeysOf(tenant) })),
      ...GUARDED_TENANTS.map((tenant) => ({ ...organization(tenant), ...guardrailsOf(tenant) })),
      ...Array.from({ length: COLD_TENANTS }, (_, index) => organization(FIRST_COLD_TENANT + index)),
    ],
  });
}

function organization(tenant: number): object {
  const email = `owner@tenant-${tenant}.test`;
  const isCold = tenant >= FIRST_COLD_TENANT && tenant < FIRST_COLD_TENANT + COLD_TENANTS;
  const secrets = [warmKey(tenant, false), ...(isCold ? [] : [warmKey(tenant, true)])];
  // The last tenant is not billed, so it leases nothing.
  const billing = tenant === TENANTS ? { billing: 'none' } : { billing: 'prepaid', opening_credit: '1000000.00' };
  return {
    slug: slugOf(tenant),
    ...billing,
    auto_routing: { policy: 'default' },
    ...(tenant % 2 === 0 ? { guardrails: { policy: 'watched' } } : {}),
    users: [{ email, role: 'owner' }],
    keys: secrets.map((secret, index) => ({ name: `key ${index}`, user: email, secret })),
  };
}
