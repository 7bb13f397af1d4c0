// Looks a generation up over HTTP as a client would, and reads its numbers without rounding them.

import { isLosslessNumber, parse } from 'lossless-json';
import { type HttpAnswer, httpCall } from './http-call.ts';
import { waitFor } from './waiting.ts';

/** A generation record with every number as the digits that stood in the body; absent and null fields are null. */
export interface GenerationView {
  readonly id: string;
  readonly model: string | null;
  readonly streamed: boolean;
  readonly billingStatus: string;
  readonly tokensPrompt: string | null;
  readonly tokensCompletion: string | null;
  readonly totalCost: string | null;
  readonly ratedCost: string | null;
  readonly authorizedAmount: string | null;
  readonly currency: string | null;
}

/** Waits until the record is no longer pending. */
export async function settledGeneration(url: string, key: string, id: string): Promise<GenerationView> {
  const record = await waitFor(
    `generation ${id} to settle`,
    () => lookupGeneration(url, key, id),
    (found) => found !== null && found.billingStatus !== 'pending',
  );
  if (record === null) throw new Error(`generation ${id} is absent`);
  return record;
}

/**
 * Asks as a client should, and repeats the request after a 503, which says that some earlier answers are not posted
 * yet. On a busy machine jobs may need longer for that than a look-up waits.
 */
export function askForGenerations(url: string, key: string, query: string): Promise<HttpAnswer> {
  return waitFor(
    `an answer to ${query}`,
    () => httpCall(`${url}/v1/${query}`, { headers: { authorization: `Bearer ${key}` } }),
    ({ status }) => status !== 503,
    120_000,
  );
}

/** null: not found. */
export async function lookupGeneration(url: string, key: string, id: string): Promise<GenerationView | null> {
  const answer = await askForGenerations(url, key, `generation?id=${id}`);
  if (answer.status === 404) return null;
  if (answer.status !== 200) throw new Error(`lookup answered ${answer.status}: ${answer.body.toString('utf8')}`);
  const { data } = parse(answer.body.toString('utf8')) as { data: Record<string, unknown> };
  return readGeneration(data);
}

export function readGeneration(data: Readonly<Record<string, unknown>>): GenerationView {
  return {
    id: String(data.id),
    model: text(data.model),
    streamed: data.streamed === true,
    billingStatus: String(data.billing_status),
    tokensPrompt: digits(data.native_tokens_prompt),
    tokensCompletion: digits(data.native_tokens_completion),
    totalCost: digits(data.total_cost),
    ratedCost: digits(data.rated_cost),
    authorizedAmount: digits(data.authorized_amount),
    currency: text(data.currency),
  };
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function digits(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (!isLosslessNumber(value)) throw new Error(`${JSON.stringify(value)} is not a JSON number`);
  return value.value;
}
