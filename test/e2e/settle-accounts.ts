// After the load of a run: waits until all of it has an end in the ledger, then compares what clients saw, the
// provider's log, the ledger and the wallets.

import type { Tollgate } from '../support/gateway.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { untilShipped } from '../support/shipped-spool.ts';
import { type SimulatedProvider, untilCallsEnd } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';
import {
  checkBooks,
  checkBounds,
  compareLedgerWithFacts,
  compareProviderWithLedger,
  compareSeenWithLedger,
  compareWallets,
  type GenerationRow,
  readFacts,
  readGenerations,
} from './kill-accounts.ts';
import type { SeenResponse } from './kill-load.ts';
import type { KillOrganization } from './kill-world.ts';

/** How long anything may take on a busy machine before it counts as stuck. */
const STUCK_MS = 120_000;

export interface SettledAccounts {
  readonly generations: readonly GenerationRow[];
  readonly postedAtMs: number;
  readonly providerCalls: number;
  /** What the provider's log says that its replies cost. */
  readonly servedPico: bigint;
  readonly chargedPico: bigint;
  /** Whole replies that died with their process before they were recorded; no client saw their end, nobody pays. */
  readonly unpaidReplies: number;
  readonly problems: readonly string[];
}

export async function settleAccounts(parts: {
  ledger: LedgerView;
  postgresUrl: string;
  provider: SimulatedProvider;
  seen: readonly SeenResponse[];
  organizations: readonly KillOrganization[];
}): Promise<SettledAccounts> {
  const { ledger, postgresUrl, provider, seen, organizations } = parts;
  await untilCallsEnd(provider);
  const calls = { starts: provider.starts(), ends: provider.ends() };
  await waitFor(
    'everything to be posted',
    async () => {
      const [row] = await ledger.query(
        `SELECT count(*)::int AS admitted, (count(*) FILTER (WHERE billing_status = 'pending'))::int AS pending
          FROM generations WHERE outcome IS DISTINCT FROM 'refused'`,
      );
      return { admitted: Number(row?.admitted), pending: Number(row?.pending) };
    },
    ({ admitted, pending }) => pending === 0 && admitted >= calls.starts.length,
    STUCK_MS,
  ).catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`)); // The comparisons below say what is missing.
  const postedAtMs = performance.now();
  const generations = await readGenerations(ledger);
  const compared = compareProviderWithLedger(calls, seen, generations);
  return {
    generations,
    postedAtMs,
    providerCalls: calls.starts.length,
    servedPico: compared.servedPico,
    chargedPico: generations.reduce((sum, row) => sum + BigInt(row.charge ?? 0), 0n),
    unpaidReplies: compared.unpaidReplies,
    problems: [
      ...compareSeenWithLedger(seen, generations),
      ...compared.problems,
      ...checkBounds(compared.chargedByBound, ''),
      ...(await compareWallets(ledger, organizations, generations)),
      ...(await checkBooks(postgresUrl)),
    ],
  };
}

/** As `settleAccounts`; then ends the installation, and compares the ledger with the facts in its own ClickHouse. */
export async function settleAndCompareFacts(parts: {
  tollgate: Tollgate;
  postgresUrl: string;
  provider: SimulatedProvider;
  seen: readonly SeenResponse[];
  organizations: readonly KillOrganization[];
}): Promise<SettledAccounts & { readonly facts: number }> {
  const { tollgate, ...of } = parts;
  const ledger = openLedgerView(of.postgresUrl);
  try {
    const settled = await settleAccounts({ ledger, ...of });
    await untilShipped(tollgate, ledger);
    // Refusals may have come after the rest.
    const generations = await readGenerations(ledger);
    await tollgate.stop({ keepData: true });
    const facts = await readFacts(tollgate.dataDir);
    const problems = [...settled.problems, ...compareLedgerWithFacts(generations, facts.rows)];
    return { ...settled, generations, facts: facts.rows.length, problems };
  } finally {
    await ledger.close();
  }
}
