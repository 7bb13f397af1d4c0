// A provider's own account of what was used and what it costs, as its exports have it, in the same shape for all.

import type { PicoUsd } from '../money/pico-usd.ts';
import type { JsonFault } from './exact-json.ts';
import type { Meter, Meters } from './meters.ts';

export const VENDORS = ['openai', 'anthropic'] as const;
export type Vendor = (typeof VENDORS)[number];

/** A stretch of time that the provider sums up, in milliseconds since 1970. */
export interface Bucket {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** How a provider says that it served requests. null: its export was not asked to tell that apart. */
export interface ServedAs {
  /** `batch` too. */
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
  /** null: it does not say. */
  readonly requests: number | null;
}

/** What is to be paid for a bucket. Negative: a credit. */
export interface CostLine extends ServedAs {
  readonly bucket: Bucket;
  /** null: not told apart, or for no model: then `description` says for what. */
  readonly model: string | null;
  readonly key: string | null;
  /** null: not told apart, or none of ours. */
  readonly meter: Meter | null;
  /** Of the meter; null: it does not say. */
  readonly quantity: number | null;
  readonly cost: PicoUsd;
  /** What the last digit of the amount stands for. */
  readonly step: PicoUsd;
  /** The provider's words for it; null: not told apart. */
  readonly description: string | null;
}

export interface Invoice {
  readonly vendor: Vendor;
  /** All that the export covers, those without any usage too. */
  readonly buckets: readonly Bucket[];
  readonly usage: readonly UsageLine[];
  readonly costs: readonly CostLine[];
  /** What a reader should know of the export, in whole sentences. */
  readonly notes: readonly string[];
}

export type InvoiceRead =
  | { readonly ok: true; readonly invoice: Invoice }
  | { readonly ok: false; readonly problem: string };

/** Where in the file, as a sentence can have it. */
export function describeFault({ line, column, problem }: JsonFault): string {
  return `line ${line}, column ${column}: ${problem}`;
}
