// The accounts after a load of every API, of clients that leave and providers that fail: what the provider's log says
// of each request, what its client saw and what the ledger has of it agree, and what it cost is the price of its
// counts.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { CallEnd, CallStart } from '../../src/simulator/call-log.ts';
import { expectedCostPico } from '../support/test-configuration.ts';
import type { GenerationRow } from './kill-accounts.ts';

/** What a client saw of one request, as far as accounts are about it. */
export interface SeenExchange {
  readonly id: string;
  /** SHA-256 of what the provider may have been sent for it. */
  readonly hashes: readonly string[];
  readonly isWhole: boolean;
  readonly providerIds: readonly string[];
  readonly executionId: string | null;
  /** Deltas of text that arrived, of a stream. */
  readonly deltas: number;
}

export interface ProviderCalls {
  /** By SHA-256 of the request, in their order. */
  readonly byHash: ReadonlyMap<string, readonly CallEnd[]>;
  readonly count: number;
  /** Calls without an end. */
  readonly open: readonly string[];
  /** A router's questions to its classifier, whose bodies the gateway makes. */
  readonly classifierCalls: number;
}

/** `isExpected`: the hashes that clients asked for; every other call must be a classifier's or of a saved response. */
export async function readProviderCalls(
  logPath: string,
  isExpected: (hash: string) => boolean,
): Promise<ProviderCalls & { readonly problems: readonly string[] }> {
  const byHash = new Map<string, CallEnd[]>();
  const open = new Set<string>();
  const problems: string[] = [];
  let count = 0;
  let classifierCalls = 0;
  for await (const line of createInterface({ input: createReadStream(logPath) })) {
    const call = JSON.parse(line) as CallStart | CallEnd;
    if (call.type === 'start') {
      count += 1;
      open.add(call.id);
      continue;
    }
    open.delete(call.id);
    if (call.responseId !== undefined) continue;
    if (isExpected(call.requestSha256)) {
      const known = byHash.get(call.requestSha256);
      if (known === undefined) byHash.set(call.requestSha256, [call]);
      else known.push(call);
    } else if (call.api === 'systemone') classifierCalls += 1;
    else problems.push(`the provider was called with a request that nobody made: ${call.id}`);
  }
  return { byHash, count, open: [...open], classifierCalls, problems };
}

export interface MixedAccounts {
  readonly problems: readonly string[];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly picoUsd: {
    /** By the provider's log, of replies whose usage it reported whole. */
    readonly provider: bigint;
    /** The same in the ledger. */
    readonly reported: bigint;
    /** In the ledger, of replies without usage or whose end was not reached: by our count of what was relayed. */
    readonly counted: bigint;
  };
}

const REPORTED = new Set(['completed', 'usage_then_cut']);
/** So is what was reported and cannot be. */
const COUNTED = new Set(['completed_without_usage', 'aborted_mid_stream', 'cut_mid_stream']);
const FREE = new Set([
  'refused',
  'connect_failed',
  'provider_refused',
  'provider_failed',
  'no_reply',
  'aborted_before_first_byte',
]);

export function compareMixed(
  seen: readonly SeenExchange[],
  calls: ProviderCalls,
  generations: readonly GenerationRow[],
): MixedAccounts {
  const problems: string[] = calls.open.map((id) => `the provider's call ${id} has no end`);
  const outcomes: Record<string, number> = {};
  const picoUsd = { provider: 0n, reported: 0n, counted: 0n };
  const seenById = new Map(seen.map((one) => [one.id, one]));
  const rowById = new Map<string, GenerationRow>();
  for (const row of generations) {
    const outcome = row.outcome ?? 'open';
    outcomes[`${outcome}/${row.billing_status}`] = (outcomes[`${outcome}/${row.billing_status}`] ?? 0) + 1;
    const client = seenById.get(row.client_request_id);
    const say = (what: string) =>
      problems.push(`execution ${row.id}, ${outcome}, of ${row.client_request_id}: ${what}`);
    if (client === undefined) {
      say('nobody asked for it');
      continue;
    }
    if (row.outcome !== 'refused') {
      if (rowById.has(client.id)) say('the ledger has the request twice');
      rowById.set(client.id, row);
    }
    if (client.executionId !== null && client.executionId !== row.id) say(`its client has ${client.executionId}`);
    for (const problem of checkBill(row)) say(problem);
    const ends = client.hashes.flatMap((hash) => calls.byHash.get(hash) ?? []);
    const served = ends.at(-1);
    const cost = BigInt(row.rated_cost ?? 0);
    if (REPORTED.has(outcome) && row.usage_source === 'reported') {
      if (served === undefined) {
        say('the provider was never called');
        continue;
      }
      for (const problem of compareCounts(row, served)) say(problem);
      picoUsd.provider += pricePico(row.api, countsOf(served));
      picoUsd.reported += cost;
    } else if (REPORTED.has(outcome) || COUNTED.has(outcome)) {
      picoUsd.counted += cost;
      for (const problem of compareOutput(row, client, served)) say(problem);
    } else if (!FREE.has(outcome)) say('nothing should end like that');
    if (client.isWhole && !outcome.startsWith('completed')) say('its client has a whole reply');
  }
  for (const client of seen)
    for (const problem of checkClient(client, calls, rowById.get(client.id))) problems.push(problem);
  return { problems, outcomes, picoUsd };
}

function* checkClient(client: SeenExchange, calls: ProviderCalls, row: GenerationRow | undefined): Generator<string> {
  if (client.hashes.length === 0) return;
  const ends = client.hashes.flatMap((hash) => calls.byHash.get(hash) ?? []);
  if (ends.length > 0 && row === undefined) yield `request ${client.id} was served and is not in the ledger`;
  // Only who was dropped before its reply began is asked again, and only once for each deployment.
  if (ends.filter(({ status }) => status !== null && status < 400).length > 1)
    yield `the provider began two replies for request ${client.id}`;
  const served = ends.at(-1);
  if (client.isWhole && served === undefined)
    yield `request ${client.id} has a whole reply that the provider did not send`;
  if (client.isWhole && served !== undefined && !served.completed)
    yield `request ${client.id} looks whole, and the provider did not finish it`;
  const known = new Set(ends.map(({ id }) => id));
  for (const id of client.providerIds)
    if (!known.has(id)) yield `request ${client.id} was answered with ${id}, which is another's`;
}

interface Counts {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly images: number;
}

/** Of `TEST_PRICES`: what an API's input and output cost. */
function pricePico(api: string, { input, cached, output, images }: Counts): bigint {
  if (api === 'count_tokens') return 0n;
  if (api === 'images') return BigInt(images) * 40_000_000_000n;
  if (api === 'embeddings' || api === 'systemone') return BigInt(input) * 42_000n;
  return expectedCostPico({ input, cached, output });
}

function countsOf(end: CallEnd): Counts {
  return { input: end.promptTokens, cached: end.cachedTokens, output: end.completionTokens, images: end.images };
}

function countsIn(row: GenerationRow): Counts {
  return {
    input: Number(row.input_tokens ?? 0),
    cached: Number(row.cached_input_tokens ?? 0),
    output: Number(row.output_tokens ?? 0),
    images: Number(row.images ?? 0),
  };
}

/** What was charged is what its counts cost, posted in one transfer or none. */
function checkBill(row: GenerationRow): string[] {
  if (row.suspense !== '0') return [`${row.suspense} is in suspense`];
  const isFree = FREE.has(row.outcome ?? '');
  const cost = isFree ? 0n : pricePico(row.api, countsIn(row));
  const isBilled = row.authorized_amount !== null;
  const charge = row.charge === null ? 0n : BigInt(row.charge);
  const found = `rated ${row.rated_cost ?? 0}, charge ${charge}, posted ${row.posted} in ${row.transfers}`;
  const due = isBilled ? cost : 0n;
  const expected = `rated ${cost}, charge ${due}, posted ${due} in ${due === 0n ? 0 : 1}`;
  return found === expected ? [] : [`expected ${expected}; found ${found}`];
}

function compareCounts(row: GenerationRow, end: CallEnd): string[] {
  const found = countsIn(row);
  const served = countsOf(end);
  const names = row.api === 'images' ? (['images'] as const) : (['input', 'cached', 'output'] as const);
  const isOutputFree = row.api === 'embeddings' || row.api === 'systemone' || row.api === 'count_tokens';
  return names
    .filter((name) => !(isOutputFree && name === 'output') && found[name] !== served[name])
    .map((name) => `${found[name]} of ${name}, where the provider served ${served[name]}`);
}

/** Our own count: no less than its client got, no more than the provider sent. */
function compareOutput(row: GenerationRow, client: SeenExchange, served: CallEnd | undefined): string[] {
  if (served === undefined) return ['the provider was never called'];
  const output = Number(row.output_tokens ?? 0);
  // Of a whole reply that was cut the provider does not know how many tokens it had sent.
  if (!served.stream && !served.completed) return [];
  if (output < client.deltas || output > served.completionTokens)
    return [`${output} tokens counted; its client got ${client.deltas}, the provider sent ${served.completionTokens}`];
  return [];
}
