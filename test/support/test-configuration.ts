// The configuration file that whole-installation tests run with: one provider, a few models, and organizations that are
// rich, poor or not billed.

import type { ApiName, ModelKind } from '../../src/domain/models/apis.ts';

export interface TestModel {
  readonly id: string;
  readonly providerModel: string;
  readonly aliases?: readonly string[];
  /** null: a missing output limit stays unbounded. */
  readonly outputCap: number | null;
  readonly active?: boolean;
  /** By default a million. */
  readonly contextLength?: number;
  readonly kind?: ModelKind;
  /** By default only Chat Completions. */
  readonly apis?: readonly ApiName[];
}

/**
 * Pico-dollars per token of `TEST_PRICES.text`: expected charges are computed from these, not by the gateway's code.
 */
export const PICO_PER_TOKEN = {
  input: 1_250_000n,
  cachedInput: 125_000n,
  cacheWrite: 1_500_000n,
  output: 10_000_000n,
} as const;
const TEST_PRICES: Readonly<Partial<Record<ModelKind, string>>> = {
  text: '{ input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }',
  image: '{ image: "0.04" }',
};
/** The price of models of other kinds, of which only the input costs. */
const TEST_INPUT_PRICE = '{ input: "0.042" }';

export const KEYS = {
  /** Prepaid, far more than any test spends. */
  acme: `tg-test-acme-${'a'.repeat(32)}`,
  /** A second key of the same organization and payer. */
  acmeSecond: `tg-test-acme-second-${'b'.repeat(25)}`,
  /** Prepaid with a millionth of a dollar. */
  poor: `tg-test-poor-${'c'.repeat(32)}`,
  /** Prepaid, without a deposit. */
  broke: `tg-test-broke-${'f'.repeat(31)}`,
  /** Not billed. */
  free: `tg-test-free-${'d'.repeat(32)}`,
  /** Another organization altogether. */
  other: `tg-test-other-${'e'.repeat(31)}`,
} as const;

export const OPENING_CREDIT_PICO = 1_000_000n * 10n ** 12n;

const STANDARD_MODELS: readonly TestModel[] = [
  { id: 'sim/small', providerModel: 'sim-small', aliases: ['sim/small-latest', 'sim/small[1m]'], outputCap: 16_384 },
  { id: 'sim/uncapped', providerModel: 'sim-large', outputCap: null },
  // For tests of refusals with Retry-After: a cooldown of this model affects no other test.
  { id: 'sim/limited', providerModel: 'sim-limited', outputCap: 16_384 },
  { id: 'sim/retired', providerModel: 'sim-mini', outputCap: 16_384, active: false },
];

/**
 * The credential for the provider. If a test finds it anywhere except in the provider's own requests, it has leaked.
 */
export const PROVIDER_KEY = 'sk-provider-canary-0123456789';

export function testConfiguration(options: {
  upstreamUrl: string;
  models?: readonly TestModel[];
  onDisconnect?: 'cancel' | 'drain';
  storedObjects?: 'shared';
}): string {
  const models = options.models ?? STANDARD_MODELS;
  return `providers:
  - id: upstream
    base_url: ${options.upstreamUrl}
    api_key: ${PROVIDER_KEY}
    auth: bearer
    on_disconnect: ${options.onDisconnect ?? 'cancel'}${options.storedObjects === undefined ? '' : `\n    stored_objects: ${options.storedObjects}`}
models:
${models.map(renderModel).join('')}organizations:
  - slug: acme
    billing: prepaid
    opening_credit: "1000000.00"
    teams: [{ slug: research }]
    users: [{ email: a@acme.test, role: owner, teams: [research] }]
    keys:
      - { name: ci, user: a@acme.test, secret: ${KEYS.acme} }
      - { name: second, user: a@acme.test, secret: ${KEYS.acmeSecond} }
  - slug: poor
    billing: prepaid
    opening_credit: "0.000001"
    users: [{ email: p@poor.test, role: owner }]
    keys: [{ name: only, user: p@poor.test, secret: ${KEYS.poor} }]
  - slug: broke
    billing: prepaid
    opening_credit: "0"
    users: [{ email: b@broke.test, role: owner }]
    keys: [{ name: only, user: b@broke.test, secret: ${KEYS.broke} }]
  - slug: free
    billing: none
    users: [{ email: f@free.test, role: owner }]
    keys: [{ name: only, user: f@free.test, secret: ${KEYS.free} }]
  - slug: other
    billing: prepaid
    opening_credit: "5.00"
    users: [{ email: o@other.test, role: owner }]
    keys: [{ name: only, user: o@other.test, secret: ${KEYS.other} }]
`;
}

function renderModel(model: TestModel): string {
  const cap = model.outputCap === null ? '' : `    max_completion_tokens_cap: ${model.outputCap}\n`;
  const kind = model.kind ?? 'text';
  const aliases = (model.aliases ?? []).map((alias) => JSON.stringify(alias)).join(', ');
  return `  - id: ${JSON.stringify(model.id)}
    display_name: ${JSON.stringify(`Test ${model.id}`)}
    kind: ${kind}
    aliases: [${aliases}]
    active: ${model.active ?? true}
    context_length: ${model.contextLength ?? 1_000_000}
    max_output_tokens: 128000
${cap}    tokenizer: o200k_base
    served_by:
      - provider: upstream
        model: ${JSON.stringify(model.providerModel)}
        apis: [${(model.apis ?? ['chat_completions']).join(', ')}]
        price: ${TEST_PRICES[kind] ?? TEST_INPUT_PRICE}
`;
}

export interface TokenCounts {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** The price of `counts` at `TEST_PRICES.text`, in pico-dollars. */
export function expectedCostPico(counts: TokenCounts): bigint {
  const uncached = BigInt(counts.input - counts.cached) * PICO_PER_TOKEN.input;
  return uncached + BigInt(counts.cached) * PICO_PER_TOKEN.cachedInput + BigInt(counts.output) * PICO_PER_TOKEN.output;
}

/** Writes pico-dollars as the shortest decimal, only by string operations. */
export function decimalOfPico(pico: bigint): string {
  const digits = pico.toString().padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -12) : `${digits.slice(0, -12)}.${fraction}`;
}
