// Compares the four accounts of a kill run: what clients saw, the provider's own log, the ledger in Postgres, the facts in ClickHouse.
// Every disagreement is a sentence; none means that they agree to the digit.

import type { CallEnd, CallStart } from '../../simulator/call-log.ts';
import type { LedgerView } from '../support/ledger-view.ts';
import { expectedCostPico, OPENING_CREDIT_PICO } from '../support/test-configuration.ts';
import type { SeenResponse } from './kill-load.ts';

export interface GenerationRow {
  readonly id: string;
  readonly billing_status: string;
  readonly outcome: string | null;
  readonly input_tokens: string | null;
  readonly cached_input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly charge: string | null;
  readonly suspense: string;
  /** What the ledger took from the wallet for it, and in how many transfers. */
  readonly posted: string;
  readonly transfers: number;
}

export async function readGenerations(ledger: LedgerView): Promise<GenerationRow[]> {
  const rows = await ledger.query(
    `SELECT g.id, g.billing_status, g.outcome, g.input_tokens::text, g.cached_input_tokens::text, g.output_tokens::text,
            g.charge::text, g.suspense::text, coalesce(-sum(e.amount), 0)::text AS posted, count(e.transfer_id)::int AS transfers
     FROM generations g
     LEFT JOIN ledger_transfers t ON t.execution_id = g.id AND t.kind = 'charge'
     LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.account_id IN (SELECT id FROM ledger_accounts WHERE kind = 'wallet')
     GROUP BY g.id ORDER BY g.id`,
  );
  return rows as unknown as GenerationRow[];
}

/** Each response that a client saw complete is posted exactly once, at the price of what it saw. */
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
    if (row === undefined) {
      problems.push(`execution ${id} was seen complete and is not in the ledger`);
      continue;
    }
    const { input, cached, output } = response.usage;
    const cost = expectedCostPico(response.usage).toString();
    const expected = `final ${input} ${cached} ${output} charge ${cost} posted ${cost} once`;
    const times = row.transfers === 1 ? 'once' : `${row.transfers} times`;
    const found = `${row.billing_status} ${row.input_tokens} ${row.cached_input_tokens} ${row.output_tokens} charge ${row.charge} posted ${row.posted} ${times}`;
    if (found !== expected) problems.push(`execution ${id}: expected ${expected}, found ${found} (${row.outcome})`);
  }
  return problems;
}

/** The provider was called at most once for each request, and served what the clients saw complete. */
export function compareSeenWithProvider(seen: readonly SeenResponse[], starts: readonly CallStart[], ends: readonly CallEnd[]): string[] {
  const problems: string[] = [];
  const callsByRequest = new Map<string, number>();
  for (const start of starts) callsByRequest.set(start.requestSha256, (callsByRequest.get(start.requestSha256) ?? 0) + 1);
  for (const [request, calls] of callsByRequest) if (calls > 1) problems.push(`the provider was called ${calls} times for request ${request}`);
  const endById = new Map(ends.map((end) => [end.id, end]));
  for (const response of seen) {
    if (!response.complete || response.usage === null) continue;
    const end = endById.get(response.providerId ?? '');
    if (end === undefined || !end.completed) problems.push(`the provider did not complete ${response.providerId}, which a client saw complete`);
    else if (end.requestSha256 !== response.requestSha256) problems.push(`a client got the answer to another request: ${response.providerId}`);
    else if (end.promptTokens !== response.usage.input || end.completionTokens !== response.usage.output || end.cachedTokens !== response.usage.cached) {
      problems.push(`the provider's log and the client disagree on ${response.providerId}`);
    }
  }
  return problems;
}

/** Every call that the provider saw was admitted on record before it was made. */
export function compareProviderWithLedger(starts: readonly CallStart[], generations: readonly GenerationRow[]): string[] {
  if (starts.length <= generations.length) return [];
  return [`the provider was called ${starts.length} times, the ledger knows ${generations.length} executions`];
}

/** The invariants of DESIGN 4: entries sum to zero, and the wallet is what was deposited less what was charged. */
export async function checkLedger(ledger: LedgerView, generations: readonly GenerationRow[]): Promise<string[]> {
  const problems: string[] = [];
  const charged = generations.reduce((sum, row) => sum + BigInt(row.charge ?? 0), 0n);
  const posted = generations.reduce((sum, row) => sum + BigInt(row.posted), 0n);
  const wallet = await ledger.wallet('acme');
  if (wallet.balance !== OPENING_CREDIT_PICO - charged) problems.push(`charges sum to ${charged}, the wallet lost ${OPENING_CREDIT_PICO - wallet.balance}`);
  if (posted !== charged) problems.push(`charges sum to ${charged}, postings to ${posted}`);
  const [sums] = await ledger.query(
    `SELECT (SELECT coalesce(sum(amount), 0)::text FROM ledger_entries) AS entries,
            (SELECT coalesce(sum(outstanding), 0)::text FROM leases) AS outstanding,
            (SELECT coalesce(sum(leased), 0)::text FROM wallets) AS leased,
            (SELECT count(*)::int FROM ledger_transfers t WHERE t.execution_id IS NOT NULL
               AND NOT EXISTS (SELECT FROM generations g WHERE g.id = t.execution_id)) AS strays`,
  );
  if (sums?.entries !== '0') problems.push(`ledger entries sum to ${String(sums?.entries)}`);
  if (sums?.outstanding !== sums?.leased) problems.push(`wallets say ${String(sums?.leased)} is leased, leases say ${String(sums?.outstanding)}`);
  if (sums?.strays !== 0) problems.push(`${String(sums?.strays)} transfers belong to no generation`);
  return problems;
}

export interface FactRow {
  readonly id: string;
  readonly tokens_prompt: string | null;
  readonly tokens_cached: string | null;
  readonly tokens_completion: string | null;
  readonly total_cost_pico: string | null;
  readonly billing_status: string;
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
    // An execution whose end is not known yet has no fact.
    if (row.outcome === null && fact === undefined) continue;
    const inLedger = `${row.billing_status} ${row.input_tokens} ${row.cached_input_tokens} ${row.output_tokens} ${row.charge}`;
    const inFacts =
      fact === undefined ? 'nothing' : `${fact.billing_status} ${fact.tokens_prompt} ${fact.tokens_cached} ${fact.tokens_completion} ${fact.total_cost_pico}`;
    if (inLedger !== inFacts) problems.push(`execution ${row.id}: the ledger has ${inLedger}, the facts ${inFacts}`);
  }
  for (const id of byId.keys()) problems.push(`a fact without a generation: ${id}`);
  return problems;
}
