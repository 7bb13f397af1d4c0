// A provider's own account of usage and costs, read from its exports, in the same shape for all providers.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { JsonFault } from './exact-json.ts';
import type { Meter, Meters } from './meters.ts';

export const VENDORS = ['openai', 'anthropic'] as const;
export type Vendor = (typeof VENDORS)[number];

/** A period whose usage or costs the provider sums up, in milliseconds since 1970. */
export interface Bucket {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** How a provider says that it served requests. null: the export does not tell that apart. */
export interface ServedAs {
  /** The service tier, or `batch`. */
  readonly tier: string | null;
  readonly isLong: boolean | null;
}

/** What was used in a bucket. */
export interface UsageLine extends ServedAs {
  readonly bucket: Bucket;
  /** null: not told apart; '': none. */
  readonly model: string | null;
  readonly key: string | null;
  readonly meters: Meters;
  /** null: the export does not say. */
  readonly requests: number | null;
}

/** What is to be paid for a bucket. Negative: a credit. */
export interface CostLine extends ServedAs {
  readonly bucket: Bucket;
  /** null: not told apart, or the cost is for no model, and `description` says what it is for. */
  readonly model: string | null;
  readonly key: string | null;
  /** null: not told apart, or none of ours. */
  readonly meter: Meter | null;
  /** The quantity of the meter; null: the export does not say. */
  readonly quantity: number | null;
  readonly cost: PicoUsd;
  /** What the last digit of the amount stands for. */
  readonly step: PicoUsd;
  /** The provider's description of the cost; null: not told apart. */
  readonly description: string | null;
}

export interface Invoice {
  readonly vendor: Vendor;
  /** All buckets that the export covers, including those without usage. */
  readonly buckets: readonly Bucket[];
  readonly usage: readonly UsageLine[];
  readonly costs: readonly CostLine[];
  /** What a reader should know of the export, in whole sentences. */
  readonly notes: readonly string[];
}

export type InvoiceRead =
  | { readonly ok: true; readonly invoice: Invoice }
  | { readonly ok: false; readonly problem: string };

/** The fault and its place in the file, in the form of a message. */
export function describeFault({ line, column, problem }: JsonFault): string {
  return `line ${line}, column ${column}: ${problem}`;
}
