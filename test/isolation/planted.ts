// The guardrail policies of a run's organizations, and the texts that are planted for them in every request.

import { markOf } from './marks.ts';
import { GUARDED_TENANTS, hasPolicy } from './world.ts';

/**
 * What the policy of its organization does to an exchange. Organizations without a policy send and receive the same
 * words.
 */
export type GuardedEnd = 'passes' | 'blocks the request' | 'blocks the reply';

/** A piece of a text, as it is sent and as it must arrive. */
export interface Piece {
  readonly written: string;
  readonly arrives: string;
  /** A placeholder must stand for this value. */
  readonly cloaked?: true;
}

/** The texts that are planted in one exchange. */
export interface Planted {
  readonly end: GuardedEnd;
  /** The planted text of the request. */
  readonly text: string;
  readonly pieces: readonly Piece[];
  /** The values that no provider may see. */
  readonly hidden: readonly string[];
  /**
   * The placeholders of its own values as a provider got them, in the order of the pieces. Empty: no call has come yet.
   */
  placeholders: readonly string[];
  /** A placeholder from another organization's request. */
  stranger: string;
}

/** An address that all organizations use; each must have another placeholder for it. */
const COMMON_MAIL = 'ada@common.example';
const MAILS = 50;
export const HOLE = '?'.repeat(15);

function mailOf(tenant: number, index: number): string {
  return `${markOf(tenant, 'p', 0)}.${index % MAILS}@organization-${tenant}.example`;
}

const maskedWord = (tenant: number): string => `falcon${tenant}`;
export const blockedWord = (tenant: number): string => `raven${tenant}`;
const labelOf = (tenant: number): string => `[${markOf(tenant, 'p', 0)}]`;
export const policyOf = (tenant: number): string => markOf(tenant, 'p', 0);

/** The policies as the configuration file has them. */
export function guardrailPolicies(): object[] {
  return GUARDED_TENANTS.map((tenant) => ({
    name: policyOf(tenant),
    rules: [
      { id: 'people', detect: ['email'], stage: 'input', action: 'cloak' },
      { id: 'words', words: [maskedWord(tenant)], stage: 'both', action: 'mask', label: labelOf(tenant) },
      { id: 'doors', words: [blockedWord(tenant)], stage: 'both', action: 'block' },
    ],
  }));
}

export function guardrailsOf(tenant: number): object {
  return { guardrails: { policy: policyOf(tenant) } };
}

export const same = (text: string): Piece => ({ written: text, arrives: text });

function otherThan(tenant: number, index: number): number {
  const others = GUARDED_TENANTS.filter((one) => one !== tenant);
  return others[index % others.length] ?? 0;
}

/** Words that only another organization's policy acts on, and the own word that is masked. */
export function words(tenant: number, index: number): Piece[] {
  const other = otherThan(tenant, index);
  const own = maskedWord(tenant);
  return [
    { written: own, arrives: hasPolicy(tenant) ? labelOf(tenant) : own },
    same(` ${maskedWord(other)} ${blockedWord(other)} `),
  ];
}

export function plantedIn(tenant: number, index: number, end: GuardedEnd): Planted {
  const cloaked = (value: string): Piece =>
    hasPolicy(tenant) ? { written: value, arrives: HOLE, cloaked: true } : same(value);
  const pieces = [
    cloaked(mailOf(tenant, index)),
    same(' '),
    ...words(tenant, index),
    cloaked(COMMON_MAIL),
    same(end === 'blocks the request' ? ` ${blockedWord(tenant)} ` : ' '),
  ];
  return {
    end,
    text: pieces.map(({ written }) => written).join(''),
    pieces,
    hidden: hasPolicy(tenant) ? [mailOf(tenant, index), COMMON_MAIL, maskedWord(tenant), blockedWord(tenant)] : [],
    placeholders: [],
    stranger: '',
  };
}
