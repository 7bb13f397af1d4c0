// After a load of every API, of clients that leave and providers that fail: waits until all of it has an end, looks
// whether anything is left open, and compares the provider's log, the ledger, the wallets, the books and the facts.

import type { Tollgate } from '../support/gateway.ts';
import { type GatewayGauges, readGauges, waitForQuiet } from '../support/gateway-gauges.ts';
import type { LedgerView } from '../support/ledger-view.ts';
import { untilShipped } from '../support/shipped-spool.ts';
import { untilCallsEnd } from '../support/simulated-provider.ts';
import { waitFor } from '../support/waiting.ts';
import { checkBooks, compareLedgerWithFacts, compareWallets, readFacts, readGenerations } from './kill-accounts.ts';
import type { KillOrganization } from './kill-world.ts';
import { compareMixed, type MixedAccounts, readProviderCalls, type SeenExchange } from './mixed-accounts.ts';

/** How long anything may take on a busy machine before it counts as stuck. */
const STUCK_MS = 120_000;

export interface SettledMixed {
  readonly providerCalls: number;
  readonly classifierCalls: number;
  readonly generations: number;
  readonly facts: number;
  /** Executions by outcome and billing status. */
  readonly outcomes: MixedAccounts['outcomes'];
  readonly picoUsd: MixedAccounts['picoUsd'] & { readonly facts: bigint };
  /** What of the gateways is open when nothing is under way. */
  readonly open: GatewayGauges;
  readonly problems: readonly string[];
}

/** Ends the installation: its facts belong to one process. */
export async function settleMixed(parts: {
  readonly tollgate: Tollgate;
  readonly ledger: LedgerView;
  readonly provider: { readonly logPath: string; openCalls(): number };
  readonly exchanges: readonly SeenExchange[];
  readonly organizations: readonly KillOrganization[];
}): Promise<SettledMixed> {
  const { tollgate, ledger, provider, exchanges, organizations } = parts;
  await untilCallsEnd(provider);
  await waitForQuiet(tollgate).catch(() => undefined);
  const open = await readGauges(tollgate);
  await waitFor(
    'everything to be posted',
    async () => {
      const [row] = await ledger.query(
        "SELECT count(*)::int AS pending FROM generations WHERE billing_status = 'pending'",
      );
      return Number(row?.pending);
    },
    (pending) => pending === 0,
    STUCK_MS,
  ).catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`)); // The comparisons below say what is missing.
  await untilShipped(tollgate, ledger);
  const reconciled = await tollgate.run(['reconcile']);
  const generations = await readGenerations(ledger);
  const hashes = new Set(exchanges.flatMap((one) => one.hashes));
  const calls = await readProviderCalls(provider.logPath, (hash) => hashes.has(hash));
  const mixed = compareMixed(exchanges, calls, generations);
  const wallets = await compareWallets(ledger, organizations, generations);
  const books = await checkBooks(tollgate.postgresUrl);
  await tollgate.stop({ keepData: true });
  const facts = await readFacts(tollgate.dataDir);
  const rated = mixed.picoUsd.reported + mixed.picoUsd.counted;
  const left = Object.entries(open).filter(([, value]) => value !== 0);
  return {
    providerCalls: calls.count,
    classifierCalls: calls.classifierCalls,
    generations: generations.length,
    facts: facts.rows.length,
    outcomes: mixed.outcomes,
    picoUsd: { ...mixed.picoUsd, facts: facts.ratedPico },
    open,
    problems: [
      ...calls.problems,
      ...mixed.problems,
      ...wallets,
      ...books,
      ...compareLedgerWithFacts(generations, facts.rows),
      ...(mixed.picoUsd.provider === mixed.picoUsd.reported
        ? []
        : [`the provider served ${mixed.picoUsd.provider}, the ledger has ${mixed.picoUsd.reported}`]),
      ...(rated === facts.ratedPico ? [] : [`the ledger rated ${rated}, the facts ${facts.ratedPico}`]),
      ...left.map(([name, value]) => `${name} is ${value} with nothing under way`),
      ...(reconciled.exitCode === 0 ? [] : [`tollgate reconcile: ${reconciled.output}`]),
    ],
  };
}
