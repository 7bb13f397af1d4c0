// Checks after a kill run that no limit was passed and nothing of what was lent is lost: budgets and leases by the
// database, rates and open requests by the provider's log, which knows nothing of them.

import type { CallEnd, CallStart } from '../../src/simulator/call-log.ts';
import type { LedgerView } from '../support/ledger-view.ts';
import type { GenerationRow } from './kill-accounts.ts';
import type { SeenResponse } from './kill-load.ts';
import type { KillOrganization } from './kill-world.ts';

const MINUTE_MS = 60_000;
/** What two calls that were admitted a minute apart may come closer on their way to the provider's log. */
const TRANSIT_MS = 1_000;
/** How much later than its gateway saw it the provider may note the end of a call. */
const LOGGED_LATE_MS = 150;

/** Refusals that each organization must have seen: what never ran out proves nothing. */
const EXPECTED_REFUSAL: Readonly<Record<string, string>> = {
  thin: 'insufficient_credit',
  budgeted: 'usage_limit_exceeded',
  unbilled: 'usage_limit_exceeded',
  unlimited: 'usage_limit_exceeded',
  rated: 'rate_limit',
  wordy: 'rate_limit',
  crowded: 'concurrency_limit',
};

export function checkRefusalsSeen(seen: readonly SeenResponse[]): string[] {
  const found = new Set(seen.map(({ organization, refusal }) => `${organization} ${refusal}`));
  return Object.entries(EXPECTED_REFUSAL).flatMap(([slug, code]) =>
    found.has(`${slug} ${code}`) ? [] : [`${slug} was never refused by ${code}`],
  );
}

/** What each budget has used is what was charged under it, within its limit. */
export async function checkBudgets(
  ledger: LedgerView,
  organizations: readonly KillOrganization[],
  generations: readonly GenerationRow[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const { slug, budgetPico } of organizations) {
    if (budgetPico === null) continue;
    const spent = generations
      .filter((row) => row.organization === slug)
      .reduce((sum, row) => sum + BigInt(row.charge ?? row.rated_cost ?? 0), 0n);
    const pools = await ledger.query(
      `SELECT p.used::text, p.leased::text FROM limit_pools p JOIN usage_limits l ON l.id = p.limit_id
        JOIN organizations o ON o.id = l.organization_id
        WHERE o.slug = $1 AND l.kind = 'budget'`,
      [slug],
    );
    const used = pools.reduce((sum, pool) => sum + BigInt(String(pool.used)), 0n);
    if (used !== spent) problems.push(`${slug}: the budget has used ${used}, its executions cost ${spent}`);
    // A run over midnight of a month's last day has two of them.
    if (pools.length === 1 && used > budgetPico)
      problems.push(`${slug}: the budget is overspent: ${used} of ${budgetPico}`);
  }
  return problems;
}

/** What its budget has left. */
export async function budgetLeft(ledger: LedgerView, slug: string, budgetPico: bigint): Promise<bigint> {
  const [row] = await ledger.query(
    `SELECT coalesce(max(p.used), 0)::text AS used FROM limit_pools p JOIN usage_limits l ON l.id = p.limit_id
      JOIN organizations o ON o.id = l.organization_id
      WHERE o.slug = $1 AND l.kind = 'budget' AND p.period_start = (SELECT max(period_start) FROM limit_pools
        WHERE limit_id = l.id)`,
    [slug],
  );
  return budgetPico - BigInt(String(row?.used));
}

/** Everything that was lent is in the hands of processes that live. */
export async function checkLent(ledger: LedgerView): Promise<string[]> {
  const [row] = await ledger.query(
    `SELECT (SELECT coalesce(sum(leased), 0)::text FROM wallets) AS wallets_leased,
            (SELECT coalesce(sum(outstanding), 0)::text FROM leases JOIN process_epochs e USING (epoch)
              WHERE e.returned_at IS NULL) AS wallets_held,
            (SELECT coalesce(sum(leased), 0)::text FROM limit_pools) AS limits_leased,
            (SELECT coalesce(sum(outstanding), 0)::text FROM limit_leases JOIN process_epochs e USING (epoch)
              WHERE e.returned_at IS NULL) AS limits_held`,
  );
  const problems: string[] = [];
  if (row?.wallets_leased !== row?.wallets_held)
    problems.push(`wallets have lent ${row?.wallets_leased}, living processes hold ${row?.wallets_held}`);
  if (row?.limits_leased !== row?.limits_held)
    problems.push(`limits have lent ${row?.limits_leased}, living processes hold ${row?.limits_held}`);
  return problems;
}

/** Once every process has handed back what it had, nothing is lent. */
export async function checkNothingLent(ledger: LedgerView): Promise<string[]> {
  const rows = await ledger.query(
    `SELECT 'wallet of ' || o.slug AS what, w.leased::text FROM wallets w JOIN organizations o
      ON o.id = w.organization_id WHERE w.leased <> 0
     UNION ALL SELECT l.kind || ' of ' || o.slug, p.leased::text
       FROM limit_pools p JOIN usage_limits l ON l.id = p.limit_id JOIN organizations o ON o.id = l.organization_id
         WHERE p.leased <> 0`,
  );
  return rows.map((row) => `${row.what}: ${row.leased} is lent although every process has given back what it had`);
}

interface Call {
  readonly startedMs: number;
  readonly endedMs: number;
  readonly tokens: number;
}

export function checkRates(
  organizations: readonly KillOrganization[],
  seen: readonly SeenResponse[],
  calls: { readonly starts: readonly CallStart[]; readonly ends: readonly CallEnd[] },
): string[] {
  const organizationOf = new Map(seen.map((response) => [response.requestSha256, response.organization]));
  const endById = new Map(calls.ends.map((end) => [end.id, end]));
  const problems: string[] = [];
  for (const { slug, requestsPerMinute, tokensPerMinute, openMax } of organizations) {
    if (requestsPerMinute === null && tokensPerMinute === null && openMax === null) continue;
    const own: Call[] = calls.starts
      .filter((start) => organizationOf.get(start.requestSha256) === slug)
      .map((start) => {
        const end = endById.get(start.id);
        return {
          startedMs: Date.parse(start.at),
          endedMs: end === undefined ? Date.parse(start.at) : Date.parse(end.at),
          tokens: end?.completed === true ? end.promptTokens + end.completionTokens : 0,
        };
      });
    if (requestsPerMinute !== null) problems.push(...checkWindow(`${slug}: requests`, own, () => 1, requestsPerMinute));
    if (tokensPerMinute !== null)
      problems.push(...checkWindow(`${slug}: tokens`, own, ({ tokens }) => tokens, tokensPerMinute));
    if (openMax !== null) problems.push(...checkOpen(slug, own, openMax));
  }
  return problems;
}

/** In no minute, wherever it begins, more than the limit. */
function checkWindow(what: string, calls: readonly Call[], amountOf: (call: Call) => number, limit: number): string[] {
  const sorted = calls.toSorted((one, other) => one.startedMs - other.startedMs);
  let first = 0;
  let sum = 0;
  let highest = 0;
  for (const call of sorted) {
    sum += amountOf(call);
    for (
      let oldest = sorted[first];
      oldest !== undefined && call.startedMs - oldest.startedMs >= MINUTE_MS - TRANSIT_MS;
      oldest = sorted[first]
    ) {
      sum -= amountOf(oldest);
      first += 1;
    }
    highest = Math.max(highest, sum);
  }
  return highest > limit ? [`${what}: ${highest} in a minute, ${limit} are allowed`] : [];
}

/** Never more open at once, as far as the provider's log can tell. */
function checkOpen(slug: string, calls: readonly Call[], limit: number): string[] {
  const changes = calls
    .filter(({ startedMs, endedMs }) => endedMs - LOGGED_LATE_MS > startedMs)
    .flatMap(({ startedMs, endedMs }) => [
      { atMs: startedMs, change: 1 },
      { atMs: endedMs - LOGGED_LATE_MS, change: -1 },
    ])
    .sort((one, other) => one.atMs - other.atMs || one.change - other.change);
  let open = 0;
  let highest = 0;
  for (const { change } of changes) {
    open += change;
    highest = Math.max(highest, open);
  }
  return highest > limit ? [`${slug}: ${highest} requests open at once, ${limit} are allowed`] : [];
}
