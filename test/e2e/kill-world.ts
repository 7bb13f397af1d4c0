// The organizations of a kill run: one that nothing limits, and one for each thing that can run out, sized so that it
// does run out within the run.

import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import {
  decimalOfPico,
  KEYS,
  OPENING_CREDIT_PICO,
  PICO_PER_TOKEN,
  testConfiguration,
} from '../support/test-configuration.ts';
import { CHANGING_GUARDRAIL, CHANGING_POLICY } from './kill-guardrails.ts';

export interface KillOrganization {
  readonly slug: string;
  readonly key: string;
  readonly clients: number;
  /** null: not billed. */
  readonly creditPico: bigint | null;
  readonly budgetPico: bigint | null;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly openMax: number | null;
  /** Its requests say how much may be written. */
  readonly setsLimit: boolean;
  /** Pause of the provider between two tokens, at most. */
  readonly delayMsMax: number;
  /** Its policy changes what passes (kill-guardrails.ts). */
  readonly isGuarded: boolean;
}

export interface KillWorld {
  readonly organizations: readonly KillOrganization[];
  configuration(upstreamUrl: string): string;
}

/** What the provider answers with at the most, unless a run says otherwise. */
export const REPLY_TOKENS_MAX = 60;
/** What an average request of the load costs: some 23 tokens in, and half of the longest reply out. */
const PROMPT_PICO = 30_000_000n;
const TOKEN_PICO = 10_000_000n;
/** Of what its clients could spend if all were as fast as each other, an organization can afford this part. */
const AFFORDED_PERCENT = 40n;
const RICH_PICO = 1_000n * 10n ** 12n;

/** Rich, and without a limit or a policy that changes anything. */
export const UNLIMITED = {
  creditPico: RICH_PICO,
  budgetPico: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  openMax: null,
  setsLimit: true,
  isGuarded: false,
} as const;
const PLAIN = { ...UNLIMITED, delayMsMax: 3 } as const;
/** Of the organization with most clients: all that it sends and gets is screened, and goes on as it came. */
const WATCHING_POLICY = 'watched';
const GUARDRAILS = `guardrails:
${CHANGING_GUARDRAIL}  - name: ${WATCHING_POLICY}
    rules:
      - { id: never, detect: [iban, card], stage: both, action: mask }
      - { id: rivers, words: [river], stage: output, action: flag }
`;
/**
 * What a request that sets no limit holds of a budget, beside its prompt: all that the model writes then. That is
 * hundreds of times what a reply costs, so that the budget has room for one such request at a time.
 */
export const UNLIMITED_HOLD_PICO = 16_384n * PICO_PER_TOKEN.output;
/** Of the request's own bytes, at most. */
export const PROMPT_HOLD_PICO = 400n * PICO_PER_TOKEN.cacheWrite;
const CLIENTS = { acme: 35, thin: 4, budgeted: 4, unbilled: 3, unlimited: 3, rated: 2, wordy: 2, crowded: 6 } as const;
const CLIENTS_TOTAL = Object.values(CLIENTS).reduce((sum, count) => sum + count, 0);

/**
 * `requests`: how many the run will make. `isGuarded`: the policy of some changes what passes, instead of watching it.
 */
export function createKillWorld(
  requests: number,
  isGuarded = false,
  replyTokensMax: number = REPLY_TOKENS_MAX,
): KillWorld {
  const requestPico = PROMPT_PICO + (TOKEN_PICO * BigInt(replyTokensMax)) / 2n;
  const affordable = (slug: keyof typeof CLIENTS): bigint =>
    (requestPico * BigInt(requests) * BigInt(CLIENTS[slug]) * AFFORDED_PERCENT) / (100n * BigInt(CLIENTS_TOTAL));
  const limited: readonly KillOrganization[] = [
    { ...PLAIN, ...named('thin'), isGuarded, creditPico: affordable('thin') },
    { ...PLAIN, ...named('budgeted'), isGuarded, budgetPico: affordable('budgeted') },
    { ...PLAIN, ...named('unbilled'), creditPico: null, budgetPico: affordable('unbilled') },
    {
      ...PLAIN,
      ...named('unlimited'),
      creditPico: null,
      setsLimit: false,
      budgetPico: UNLIMITED_HOLD_PICO + PROMPT_HOLD_PICO + affordable('unlimited'),
    },
    { ...PLAIN, ...named('rated'), requestsPerMinute: Math.min(40, requests / 100) },
    { ...PLAIN, ...named('wordy'), tokensPerMinute: Math.min(4_000, requests / 2) },
    { ...PLAIN, ...named('crowded'), openMax: 4, delayMsMax: 25 },
  ];
  const acme: KillOrganization = {
    ...PLAIN,
    ...named('acme'),
    key: KEYS.acme,
    isGuarded,
    creditPico: OPENING_CREDIT_PICO,
  };
  const policyOf = (organization: KillOrganization): string | null =>
    organization.isGuarded ? CHANGING_POLICY : organization === acme ? WATCHING_POLICY : null;
  const assign = (yaml: string, organization: KillOrganization): string => {
    const policy = policyOf(organization);
    const line = `  - slug: ${organization.slug}\n`;
    return policy === null ? yaml : yaml.replace(line, `${line}    guardrails: { policy: ${policy} }\n`);
  };
  return {
    organizations: [acme, ...limited],
    configuration: (upstreamUrl) =>
      GUARDRAILS +
      assign(testConfiguration({ upstreamUrl }), acme) +
      limited
        .map((organization) => {
          const { slug, creditPico } = organization;
          const yaml = renderOrganization({
            slug,
            credit: creditPico === null ? null : decimalOfPico(creditPico),
            limits: limitsOf(organization),
          });
          return assign(yaml, organization);
        })
        .join(''),
  };
}

function named(slug: keyof typeof CLIENTS): { slug: string; key: string; clients: number } {
  return { slug, key: limitedKey(slug), clients: CLIENTS[slug] };
}

function limitsOf({ budgetPico, requestsPerMinute, tokensPerMinute, openMax }: KillOrganization): string[] {
  const limits: string[] = [];
  if (budgetPico !== null) limits.push(`{ kind: budget, window: month, limit: "${decimalOfPico(budgetPico)}" }`);
  if (requestsPerMinute !== null) limits.push(`{ kind: requests_per_minute, limit: ${requestsPerMinute} }`);
  if (tokensPerMinute !== null) limits.push(`{ kind: tokens_per_minute, limit: ${tokensPerMinute} }`);
  if (openMax !== null) limits.push(`{ kind: concurrent_requests, limit: ${openMax} }`);
  return limits;
}
