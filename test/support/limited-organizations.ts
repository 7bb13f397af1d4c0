// Organizations with little money and narrow limits: the configuration of an installation, its keys, and a provider
// that uses exactly as much as a request may.

import { type FakeUpstream, type Script, startFakeUpstream } from './fake-upstream.ts';

export interface LimitedOrganization {
  readonly slug: string;
  /** Decimal dollars; null: not billed. */
  readonly credit: string | null;
  /** As the configuration file has them: `{ kind: ..., limit: ... }`. */
  readonly limits?: readonly string[];
}

/**
 * The price of an output token in pico-dollars. Input is free, so that a hold does not depend on how its bound is
 * found.
 */
export const PICO_PER_OUTPUT_TOKEN = 10_000_000n;
const OUTPUT_PRICE = '10.00';

export function limitedKey(slug: string): string {
  return `tg-test-${slug}-${'k'.repeat(40)}`;
}

export function limitedConfiguration(upstreamUrl: string, organizations: readonly LimitedOrganization[]): string {
  return `providers:
  - { id: upstream, base_url: ${upstreamUrl}, api_key: sk-provider, auth: bearer }
models:
${renderModel('sim/small', UNLIMITED_TOKENS)}${renderModel('sim/uncapped', null)}  - id: sim/judge
    display_name: Test judge
    kind: evaluation
    context_length: 1000000
    tokenizer: o200k_base
    served_by: [{ provider: upstream, model: judge, apis: [systemone], price: { input: "0.042" } }]
organizations:
${organizations.map(renderOrganization).join('')}`;
}

function renderModel(id: string, outputCap: number | null): string {
  return `  - id: ${id}
    display_name: Test ${id}
    kind: text
    context_length: 1000000
    max_output_tokens: 128000
${outputCap === null ? '' : `    max_completion_tokens_cap: ${outputCap}\n`}    tokenizer: o200k_base
    served_by:
      - provider: upstream
        model: small
        apis: [chat_completions, responses, messages, count_tokens]
        price: { input: "0", output: "${OUTPUT_PRICE}" }
`;
}

export function renderOrganization({ slug, credit, limits = [] }: LimitedOrganization): string {
  return `  - slug: ${slug}
    billing: ${credit === null ? 'none' : 'prepaid'}
${credit === null ? '' : `    opening_credit: "${credit}"\n`}    limits: [${limits.join(', ')}]
    users: [{ email: owner@${slug}.test, role: owner }]
    keys: [{ name: only, user: owner@${slug}.test, secret: ${limitedKey(slug)} }]
`;
}

export function chatBody(outputTokensMax: number, content = 'hi'): string {
  return JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content }], max_tokens: outputTokensMax });
}

/** A body without an output limit that tells the provider how many tokens to use. */
export function unlimitedChatBody(outputTokens: number): string {
  return JSON.stringify({
    model: 'sim/small',
    messages: [{ role: 'user', content: 'hi' }],
    user: String(outputTokens),
  });
}

/** The tokens that a request for `sim/small` without a limit holds. */
export const UNLIMITED_TOKENS = 16_384;

/**
 * Starts a provider that reports every allowed output token as used, so the whole hold is charged. `before` runs before
 * each answer, for requests that stay open.
 */
export function startExactProvider(
  before: (outputTokens: number) => Promise<void> = () => Promise.resolve(),
): Promise<FakeUpstream> {
  return startFakeUpstream(async ({ body }): Promise<Script> => {
    const { max_tokens, max_output_tokens, user } = JSON.parse(body.toString()) as {
      max_tokens?: number;
      max_output_tokens?: number;
      user?: string;
    };
    const tokens = max_tokens ?? max_output_tokens ?? Number(user ?? 0);
    await before(tokens);
    // The usage in the form of every text dialect.
    const usage = {
      prompt_tokens: 1,
      input_tokens: 1,
      completion_tokens: tokens,
      output_tokens: tokens,
      total_tokens: tokens + 1,
    };
    return { body: JSON.stringify({ choices: [], output: [], content: [], input_tokens: 1, usage }) };
  });
}
