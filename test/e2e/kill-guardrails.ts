// The policy of a kill run whose organizations have their texts changed: what a request says, and what of it the
// provider is sent. kill-guardrail-accounts.ts compares afterwards.

import { deriveCloakKey } from '../../src/domain/guardrails/cloak-key.ts';
import { Placeholders } from '../../src/domain/guardrails/placeholders.ts';
import { derivePepper } from '../../src/domain/identity/key-hash.ts';
import type { LedgerView } from '../support/ledger-view.ts';

export const CHANGING_POLICY = 'changing';
const PROJECT = 'plantedfalcon';
const PROJECT_LABEL = '[project]';
const REFUSED_WORD = 'plantedraven';
/** The simulated provider says it in most of its longer replies. */
const OUTPUT_WORD = 'river';
const OUTPUT_LABEL = '[water]';
/** Of two of its words each: in one reply of twenty. */
const BLOCKED_PHRASES = ['ledger coin', 'bridge stone', 'quiet garden', 'winter where', 'open small', 'paper number'];

export const CHANGING_GUARDRAIL = `  - name: ${CHANGING_POLICY}
    rules:
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: projects, words: [${PROJECT}], stage: input, action: mask, label: "${PROJECT_LABEL}" }
      - { id: gates, words: [${REFUSED_WORD}], stage: input, action: block }
      - { id: waters, words: [${OUTPUT_WORD}], stage: output, action: mask, label: "${OUTPUT_LABEL}" }
      - { id: doors, words: [${BLOCKED_PHRASES.join(', ')}], stage: output, action: block }
`;

/** What a placeholder is for an address, in one organization. */
export type CloakAddress = (address: string) => string;

/** Computed from the secrets of the installation, as every one of its processes does, before and after it is killed. */
export async function readCloaks(
  ledger: LedgerView,
  masterKey: Buffer,
  organizations: readonly { readonly slug: string; readonly isGuarded: boolean }[],
): Promise<ReadonlyMap<string, CloakAddress>> {
  const rows = await ledger.query('SELECT id::text, slug FROM organizations');
  const cloaks = new Map<string, CloakAddress>();
  for (const { slug } of organizations.filter(({ isGuarded }) => isGuarded)) {
    const id = String(rows.find((row) => row['slug'] === slug)?.['id']);
    const key = deriveCloakKey(derivePepper(masterKey), id);
    cloaks.set(slug, (address) =>
      new Placeholders({ key, apiKeyId: '', conversation: '' }).of('email', address, {
        form: 'token',
        scope: 'organization',
        restore: true,
      }),
    );
  }
  return cloaks;
}

const REFUSED_SHARE = 0.03;

/** What one request has of it. */
export interface GuardedWords {
  /** Cloaked, and said by the provider again. */
  readonly address: string;
  readonly isRefused: boolean;
  /** As it stands in the request, with this address. */
  textFor(address: string, project: string): string;
}

export function guardedWords(id: string, random: () => number): GuardedWords {
  const isRefused = random() > 1 - REFUSED_SHARE;
  return {
    address: addressOf(id),
    isRefused,
    textFor: (address, project) =>
      ` For ${address}, about ${project}${isRefused ? ` and ${REFUSED_WORD}` : ''}. ` +
      `[[sim: tool_call=note tool_arguments={"to":"${address}"}]]`,
  };
}

/** The project as clients write it, and as the provider reads it. */
export const PROJECT_WORDS = { written: PROJECT, masked: PROJECT_LABEL } as const;

function addressOf(id: string): string {
  return `customer-${id}@kill-run.example`;
}

/** What a client sees of guardrails in an answer. */
export interface SeenGuardrails {
  readonly blocked: 'input' | 'output' | null;
  /** How many words of the reply were replaced. */
  readonly masked: number;
  /** The cloaked address has come back. */
  readonly isRestored: boolean;
}

export function readGuardrails(text: string, id: string): SeenGuardrails {
  return {
    blocked: (/"guardrail":\{[^}]*"stage":"(input|output)"/.exec(text)?.[1] as 'input' | 'output' | undefined) ?? null,
    masked: text.split(OUTPUT_LABEL).length - 1,
    isRestored: text.includes(addressOf(id)),
  };
}
