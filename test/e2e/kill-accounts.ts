// Compares the four accounts of a kill run: what clients saw, the provider's own log, the ledger in Postgres, the facts
// in ClickHouse. Every disagreement is a sentence; none means that they agree to the digit.

import type { ScreeningReport } from '../../src/domain/guardrails/screening-report.ts';
import type { CallEnd, CallStart } from '../../src/simulator/call-log.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { readPendingExecutions } from '../../src/storage/postgres/ledger/pending-executions.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { queryFacts } from '../support/facts-view.ts';
import type { LedgerView } from '../support/ledger-view.ts';
import { silentLog } from '../support/silent-log.ts';
import { expectedCostPico } from '../support/test-configuration.ts';
import { OUTPUT_TOKENS_MAX, type SeenResponse } from './kill-load.ts';
import type { KillOrganization } from './kill-world.ts';

export interface GenerationRow {
  readonly id: string;
  readonly organization: string;
  readonly client_request_id: string;
  readonly api: string;
  readonly billing_status: string;
  readonly outcome: string | null;
  readonly input_tokens: string | null;
  readonly cached_input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly images: string | null;
  readonly usage_source: string | null;
  readonly authorized_amount: string | null;
  readonly rated_cost: string | null;
  readonly charge: string | null;
  readonly suspense: string;
  readonly budget_use: string | null;
  /** What the ledger took from the wallet for it, and in how many transfers. */
  readonly posted: string;
  readonly transfers: number;
  readonly screening: ScreeningReport | null;
}

export async function readGenerations(ledger: LedgerView): Promise<GenerationRow[]> {
  const rows = await ledger.query(
    `SELECT g.id, o.slug AS organization, g.client_request_id, g.api, g.billing_status, g.outcome,
            g.input_tokens::text, g.cached_input_tokens::text, g.output_tokens::text, g.images::text, g.usage_source,
            g.screening, g.authorized_amount::text, g.rated_cost::text, g.charge::text, g.suspense::text, g.budget_use::text,
            coalesce(-sum(e.amount), 0)::text AS posted, count(e.transfer_id)::int AS transfers
     FROM generations g
     JOIN organizations o ON o.id = g.organization_id
     LEFT JOIN ledger_transfers t ON t.execution_id = g.id AND t.kind = 'charge'
     LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.account_id IN (SELECT id FROM ledger_accounts
       WHERE kind = 'wallet')
     GROUP BY g.id, o.slug ORDER BY g.id`,
  );
  return rows as unknown as GenerationRow[];
}

/** Each response that a client saw complete is in the ledger exactly once, at the price of what it saw. */
export function compareSeenWithLedger(seen: readonly SeenResponse[], generations: readonly GenerationRow[]): string[] {
  const byId = new Map(generations.map((row) => [row.id, row]));
  const problems: string[] = [];
  const ids = new Set<string>();
  for (const response of seen) {
    if (!response.complete || response.usage === null) continue;
    const id = response.executionId ?? 'none';
    if (ids.has(id)) problems.push(`two responses have the execution id ${id}`);
    ids.add(id);
    const row = byId.get(id);
    if (row === undefined) problems.push(`execution ${id} was seen complete and is not in the ledger`);
    else if (row.client_request_id !== response.clientRequestId) problems.push(`execution ${id} is another request's`);
    else problems.push(...compareBill(row, response.usage));
  }
  return problems;
}

/**
 * A whole reply: charged what it cost where the organization is billed, rated where it is not; posted in one transfer
 * or none.
 */
function compareBill(row: GenerationRow, { input, cached, output }: NonNullable<SeenResponse['usage']>): string[] {
  const cost = expectedCostPico({ input, cached, output }).toString();
  const bill =
    row.authorized_amount === null
      ? `not_billed, charge null, posted 0 in 0`
      : `final, charge ${cost}, posted ${cost} in 1`;
  const expected = `${input} ${cached} ${output}, completed, rated ${cost}, ${bill}, suspense 0`;
  const counts =
    `${row.input_tokens} ${row.cached_input_tokens} ${row.output_tokens}, ${row.outcome}, ` + `rated ${row.rated_cost}`;
  const found =
    `${counts}, ${row.billing_status}, charge ${row.charge}, posted ${row.posted} in ${row.transfers}, ` +
    `suspense ${row.suspense}`;
  return found === expected ? [] : [`execution ${row.id}: expected ${expected}; found ${found}`];
}

/** Of the arguments of a call we count tokens, where the simulated provider counts pieces of eight characters. */
const ARGUMENT_TOKENS_MAX = 16;

/** Where a count fails, what the request may have at most is charged instead. */
function isBound(output: number, served: { readonly output: number }): boolean {
  return output === OUTPUT_TOKENS_MAX && output > served.output + ARGUMENT_TOKENS_MAX;
}

/** By the log of a gateway: the thread was killed, or died, before it had counted. */
const COUNT_FAILED = /"task":"count-tokens"[^\n]*a worker task (?:ran out of time|failed)/g;

/** A bound is charged as often as counts have failed at most. */
export function checkBounds(chargedByBound: readonly string[], log: string): string[] {
  const failed = log.match(COUNT_FAILED)?.length ?? 0;
  if (chargedByBound.length <= failed) return [];
  return [`charged by their bound: ${chargedByBound.join(', ')}; the log knows of ${failed} counts that failed`];
}

/**
 * A blocked reply was produced: it is charged by what the provider reported, or by what had come of it, which is no
 * more than the provider sent.
 */
function compareBlockedBill(
  row: GenerationRow,
  served: { readonly input: number; readonly cached: number; readonly output: number },
): string[] {
  const [input, cached, output] = [row.input_tokens, row.cached_input_tokens, row.output_tokens].map(Number) as [
    number,
    number,
    number,
  ];
  const cost = expectedCostPico({ input, cached, output }).toString();
  const expected = `rated ${cost}, final, charge ${cost}, posted ${cost} in 1, suspense 0`;
  const found =
    `rated ${row.rated_cost}, ${row.billing_status}, charge ${row.charge}, ` +
    `posted ${row.posted} in ${row.transfers}, suspense ${row.suspense}`;
  const problems = found === expected ? [] : [`execution ${row.id} was blocked: expected ${expected}; found ${found}`];
  if (isBound(output, served)) return problems;
  if (output > served.output + ARGUMENT_TOKENS_MAX || output === 0)
    problems.push(`execution ${row.id} was blocked after ${output} tokens of ${served.output}`);
  return problems;
}

export interface ProviderTotals {
  readonly problems: readonly string[];
  /** What the provider's log says the replies cost that the ledger has as ended. */
  readonly servedPico: bigint;
  /**
   * Whole replies that were lost with their process before they were recorded: no client saw their end, so nobody pays.
   */
  readonly unpaidReplies: number;
  /** Executions with a blocked reply whose tokens could not be counted: checkBounds says whether they may be. */
  readonly chargedByBound: readonly string[];
}

/**
 * Call by call: each was admitted on record before it was made, at most once for each request, and each execution in
 * the ledger is what the provider says that it did. What a dying process had open is charged nothing, and no client saw
 * it complete.
 */
export function compareProviderWithLedger(
  calls: { readonly starts: readonly CallStart[]; readonly ends: readonly CallEnd[] },
  seen: readonly SeenResponse[],
  generations: readonly GenerationRow[],
): ProviderTotals {
  const problems: string[] = [];
  const asked = new Map(seen.map((response) => [response.requestSha256, response]));
  const endByCall = new Map(calls.ends.map((end) => [end.id, end]));
  const endByRequest = new Map<string, CallEnd>();
  const called = new Set<string>();
  for (const start of calls.starts) {
    const response = asked.get(start.requestSha256);
    const end = endByCall.get(start.id);
    if (response === undefined) problems.push(`the provider was called with a request that nobody made: ${start.id}`);
    else if (called.has(response.clientRequestId))
      problems.push(`the provider was called twice for request ${response.clientRequestId}`);
    else if (end === undefined) problems.push(`the provider's call ${start.id} has no end`);
    else {
      called.add(response.clientRequestId);
      endByRequest.set(response.clientRequestId, end);
      if (response.complete && response.providerId !== start.id)
        problems.push(`request ${response.clientRequestId} was answered with ${response.providerId}`);
    }
  }
  const inLedger = new Set(generations.filter((row) => row.outcome !== 'refused').map((row) => row.client_request_id));
  for (const request of called)
    if (!inLedger.has(request))
      problems.push(`the provider was called for request ${request}, which the ledger does not know`);

  const completed = new Set(seen.filter(hasSeenEnd).map((response) => response.clientRequestId));
  const requests = new Set<string>();
  let servedPico = 0n;
  let unpaidReplies = 0;
  const chargedByBound: string[] = [];
  for (const row of generations) {
    const request = row.client_request_id;
    if (row.outcome === 'refused') {
      // Recorded without an admission; the client may have asked again under the same label.
      const found = `${row.billing_status} ${row.charge} ${row.posted} ${row.suspense} ${row.authorized_amount}`;
      if (found !== 'not_billed null 0 0 null') problems.push(`execution ${row.id} was refused and has ${found}`);
      continue;
    }
    if (requests.has(request)) problems.push(`request ${request} is in the ledger twice`);
    requests.add(request);
    const end = endByRequest.get(request);
    if (row.outcome === 'process_killed') {
      const found = `${row.billing_status} ${row.charge} ${row.posted} ${row.suspense}`;
      const expected = row.authorized_amount === null ? 'not_billed null 0 0' : 'cancelled 0 0 0';
      if (found !== expected)
        problems.push(`execution ${row.id} died with its process: expected ${expected}, found ${found}`);
      if (completed.has(request)) problems.push(`execution ${row.id} was seen whole and is cancelled`);
      if (end?.completed === true) unpaidReplies += 1;
    } else if (row.outcome === 'output_blocked' && end !== undefined) {
      const served = tokensOf(end);
      problems.push(...compareBlockedBill(row, served));
      if (isBound(Number(row.output_tokens), served)) chargedByBound.push(row.id);
      servedPico += BigInt(row.rated_cost ?? 0);
    } else if (row.outcome !== 'completed') {
      problems.push(`execution ${row.id} ended as ${row.outcome}, ${row.billing_status}`);
    } else if (end === undefined) {
      problems.push(`execution ${row.id} is complete in the ledger, and the provider was never called`);
    } else {
      // The gateway may have died with all of the reply before the provider knew that it had it: the counts say what
      // was sent.
      const served = tokensOf(end);
      problems.push(...compareBill(row, served));
      servedPico += expectedCostPico(served);
    }
  }
  return { problems, servedPico, unpaidReplies, chargedByBound };
}

/** The whole reply, or the block in its place. */
function hasSeenEnd({ complete, guardrails }: SeenResponse): boolean {
  return complete || guardrails.blocked === 'output';
}

function tokensOf(end: CallEnd): NonNullable<SeenResponse['usage']> {
  return { input: end.promptTokens, cached: end.cachedTokens, output: end.completionTokens };
}

/** Wallet by wallet: what was paid in is what is there and what was charged. */
export async function compareWallets(
  ledger: LedgerView,
  organizations: readonly KillOrganization[],
  generations: readonly GenerationRow[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const { slug, creditPico } of organizations) {
    if (creditPico === null) continue;
    const charged = generations
      .filter((row) => row.organization === slug)
      .reduce((sum, row) => sum + BigInt(row.charge ?? 0), 0n);
    const { balance } = await ledger.wallet(slug);
    if (balance !== creditPico - charged)
      problems.push(`${slug}: charges sum to ${charged}, the wallet lost ${creditPico - balance}`);
    if (balance < 0n) problems.push(`${slug}: the wallet is overspent: ${balance}`);
  }
  return problems;
}

/** What `tollgate reconcile` asks of the books, and that nothing is pending. */
export async function checkBooks(postgresUrl: string): Promise<string[]> {
  const postgres = createPostgres({ url: postgresUrl, log: silentLog, max: 1 });
  try {
    const broken = await findBrokenInvariants(postgres);
    const { count, late } = await readPendingExecutions(postgres);
    const problems = broken.map(({ invariant, found }) => `broken: ${invariant}: ${found}`);
    if (count > 0) problems.push(`${count} executions are pending`);
    if (late.length > 0) problems.push(`pending for longer than the rule allows: ${JSON.stringify(late)}`);
    return problems;
  } finally {
    await postgres.close();
  }
}

export interface FactRow {
  readonly id: string;
  readonly tokens_prompt: string | null;
  readonly tokens_cached: string | null;
  readonly tokens_completion: string | null;
  readonly total_cost_pico: string | null;
  readonly billing_status: string;
}

const FACTS_QUERY = `
  SELECT toString(id) AS id, toString(tokens_prompt) AS tokens_prompt, toString(tokens_cached) AS tokens_cached,
         toString(tokens_completion) AS tokens_completion,
           toString(toInt128(total_cost * 1000000000000)) AS total_cost_pico, billing_status
  FROM request_facts FINAL`;

export interface Facts {
  readonly rows: readonly FactRow[];
  /** What all of it cost. */
  readonly ratedPico: bigint;
}

/** Of an installation that has been stopped. */
export function readFacts(dataDir: string): Promise<Facts> {
  return selectFacts((query) => queryFacts(dataDir, query));
}

export async function selectFacts(select: <Row>(query: string) => Promise<Row[]>): Promise<Facts> {
  const rows = await select<FactRow>(FACTS_QUERY);
  const [sum] = await select<{ rated: string }>(
    'SELECT toString(toInt128(sum(rated_cost) * 1000000000000)) AS rated FROM request_facts FINAL',
  );
  return { rows, ratedPico: BigInt(sum?.rated ?? 0) };
}

/** The facts are the ledger's generations, one for one. */
export function compareLedgerWithFacts(generations: readonly GenerationRow[], facts: readonly FactRow[]): string[] {
  const problems: string[] = [];
  const byId = new Map<string, FactRow>();
  for (const fact of facts) {
    if (byId.has(fact.id)) problems.push(`two facts for execution ${fact.id}`);
    byId.set(fact.id, fact);
  }
  for (const row of generations) {
    const fact = byId.get(row.id);
    byId.delete(row.id);
    const inLedger = `${row.billing_status} ${row.input_tokens} ${row.cached_input_tokens} ${row.output_tokens} ${row.charge}`;
    const inFacts =
      fact === undefined
        ? 'nothing'
        : `${fact.billing_status} ${fact.tokens_prompt} ${fact.tokens_cached} ${fact.tokens_completion} ${fact.total_cost_pico}`;
    if (inLedger !== inFacts) problems.push(`execution ${row.id}: the ledger has ${inLedger}, the facts ${inFacts}`);
  }
  for (const id of byId.keys()) problems.push(`a fact without a generation: ${id}`);
  return problems;
}
