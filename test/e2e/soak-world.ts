// What a long run of mixed load is served with: a provider that is well, one that fails and one with little patience
// for clients that do not read, models of every kind, and organizations that are billed, free, routed and screened.

import { limitedKey } from '../support/limited-organizations.ts';
import { KEYS } from '../support/test-configuration.ts';
import { type KillOrganization, UNLIMITED } from './kill-world.ts';

/** Of the provider `impatient`: a client that takes nothing of its reply for so long is cut off. */
export const IMPATIENT_MS = 10_000;
const FAILING_MS = 3_000;
const CREDIT_PICO = 100_000n * 10n ** 12n;

const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 0, creditPico: CREDIT_PICO } as const;
export const SOAK_ORGANIZATIONS: readonly KillOrganization[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme },
  /** Everything that passes is looked at, and goes on as it came. */
  { ...PLAIN, slug: 'screened', key: limitedKey('screened') },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null },
];

const TEXT_PRICE = '{ input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }';
const TEXT_APIS = '[chat_completions, responses, messages, count_tokens]';

export function soakConfiguration(upstreamUrl: string): string {
  const text = (id: string, provider: string) =>
    `  - { id: sim/${id}, context_length: 1000000, max_output_tokens: 128000, max_completion_tokens_cap: 16384, ` +
    `tokenizer: o200k_base, served_by: [{ provider: ${provider}, model: ${id}-1, apis: ${TEXT_APIS}, price: ${TEXT_PRICE} }] }`;
  const other = (id: string, kind: string, api: string, price: string) =>
    `  - { id: sim/${id}, kind: ${kind}, ${kind === 'image' ? '' : 'context_length: 64000, '}` +
    `served_by: [{ provider: upstream, model: ${id}-1, apis: [${api}], price: ${price} }] }`;
  const organization = ({ slug, key, creditPico }: KillOrganization) => `  - slug: ${slug}
    billing: ${creditPico === null ? 'none' : `prepaid\n    opening_credit: "${creditPico / 10n ** 12n}"`}
    auto_routing: { policy: default }
${slug === 'screened' ? '    guardrails: { policy: watched }\n' : ''}    users: [{ email: o@${slug}.test, role: owner }]
    keys: [{ name: only, user: o@${slug}.test, secret: ${key} }]`;
  return `providers:
  - { id: upstream, base_url: ${upstreamUrl}, api_key: sk-upstream }
  - { id: failing, base_url: ${upstreamUrl}, api_key: sk-failing, timeouts: { first_byte_ms: ${FAILING_MS}, idle_ms: ${FAILING_MS} } }
  - { id: impatient, base_url: ${upstreamUrl}, api_key: sk-impatient, timeouts: { idle_ms: ${IMPATIENT_MS} } }
models:
${[
  text('small', 'upstream'),
  text('large', 'upstream'),
  text('failing', 'failing'),
  text('impatient', 'impatient'),
  other('image', 'image', 'images', '{ image: "0.04" }'),
  other('embedding', 'embedding', 'embeddings', '{ input: "0.042" }'),
  other('judge', 'evaluation', 'systemone', '{ input: "0.042" }'),
].join('\n')}
guardrails:
  - name: watched
    rules:
      - { id: never, detect: [iban, card], stage: both, action: mask }
      - { id: rivers, words: [river], stage: output, action: flag }
routing_policies:
  - name: default
    classifier: { model: sim/judge, timeout_ms: 10000, confidence_floor: 0.6 }
    tiers:
      - { name: light, description: "Easy.", models: [{ id: sim/small }] }
      - { name: strong, description: "Hard.", models: [{ id: sim/large }] }
    fallback_tier: strong
    kinds: { code: "Code.", prose: "Text." }
    follow_up: { corrections: true, threshold: 0.7 }
organizations:
${SOAK_ORGANIZATIONS.map(organization).join('\n')}
`;
}
