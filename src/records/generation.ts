// The generation record of spec 2.1 as JSON text. Money is written as exact JSON numbers, so the text is put together
// here and not by JSON.stringify.

import { formatUsdJsonNumber } from '../domain/money/format.ts';
import type { BillingStatus } from '../domain/settlement/outcome.ts';

/** What storage knows of an execution. Money in pico-dollars; null where it is not known. */
export interface Generation {
  readonly id: string;
  readonly model: string;
  readonly streamed: boolean;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly billingStatus: BillingStatus;
  readonly charge: bigint | null;
  readonly ratedCost: bigint | null;
  readonly authorizedAmount: bigint | null;
}

/** A count or cost that is not known is left out: missing means unavailable, not zero (spec 2.1). */
export function renderGeneration(generation: Generation): string {
  const fields = [
    `"id":${JSON.stringify(generation.id)}`,
    `"model":${JSON.stringify(generation.model)}`,
    `"streamed":${generation.streamed}`,
  ];
  if (generation.inputTokens !== null) fields.push(`"native_tokens_prompt":${generation.inputTokens}`);
  if (generation.outputTokens !== null) fields.push(`"native_tokens_completion":${generation.outputTokens}`);
  fields.push(`"billing_status":${JSON.stringify(generation.billingStatus)}`);
  if (generation.charge !== null) fields.push(`"total_cost":${formatUsdJsonNumber(generation.charge)}`);
  fields.push('"currency":"USD"');
  if (generation.ratedCost !== null) fields.push(`"rated_cost":${formatUsdJsonNumber(generation.ratedCost)}`);
  if (generation.authorizedAmount !== null)
    fields.push(`"authorized_amount":${formatUsdJsonNumber(generation.authorizedAmount)}`);
  return `{${fields.join(',')}}`;
}
