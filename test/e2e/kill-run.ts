// A kill run: load, and `kill -9` of gateways and of jobs at moments drawn from a seed; afterwards all accounts must agree.
// By hand: `node test/e2e/kill-run.ts --seed 1 --kills 50`.

import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { queryFacts } from '../support/facts-view.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import {
  checkLedger,
  compareLedgerWithFacts,
  compareProviderWithLedger,
  compareSeenWithLedger,
  compareSeenWithProvider,
  type FactRow,
  type GenerationRow,
  readGenerations,
} from './kill-accounts.ts';
import { type Load, type SeenResponse, startLoad } from './kill-load.ts';

const GATEWAY_PROCESSES = 2;
const PARALLEL = 16;
/** Responses that clients must have seen complete between two kills, so that a run is not all connection failures. */
const COMPLETE_BETWEEN_KILLS = 20;
/** One kill in four hits jobs. */
const JOBS_SHARE = 0.25;

export interface KillReport {
  readonly requests: number;
  readonly complete: number;
  /** Responses that began and did not end. */
  readonly cut: number;
  readonly gatewayKills: number;
  readonly jobsKills: number;
  readonly providerCalls: number;
  readonly generations: number;
  readonly facts: number;
  readonly chargedPico: bigint;
  /** Executions by outcome and billing status. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** What clients saw, by HTTP status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Empty when all accounts agree. */
  readonly problems: readonly string[];
}

export async function runKills(options: { seed: number; kills: number; print?: (line: string) => void }): Promise<KillReport> {
  const provider = await startSimulatedProvider();
  let tollgate: Tollgate | null = null;
  let ledger: LedgerView | null = null;
  try {
    tollgate = await startTollgate({ configurationYaml: testConfiguration({ upstreamUrl: provider.url }), gatewayProcesses: GATEWAY_PROCESSES });
    ledger = openLedgerView(tollgate.postgresUrl);
    const load = startLoad({ url: tollgate.url, key: KEYS.acme, seed: options.seed, parallel: PARALLEL });
    const kills = await killAtRandom(tollgate, load, options);
    await load.stop();
    const generations = await settle(ledger, load.seen, provider);
    const fromLedger = await checkLedger(ledger, generations);
    await ledger.close();
    ledger = null;
    await tollgate.stop({ keepData: true });
    const facts = await readFacts(tollgate.dataDir);
    const problems = [
      ...compareSeenWithLedger(load.seen, generations),
      ...compareSeenWithProvider(load.seen, provider.starts(), provider.ends()),
      ...compareProviderWithLedger(provider.starts(), generations),
      ...fromLedger,
      ...compareLedgerWithFacts(generations, facts),
    ];
    return { ...kills, ...summarize(load.seen, generations), providerCalls: provider.starts().length, facts: facts.length, problems };
  } finally {
    await ledger?.close();
    await tollgate?.stop();
    await provider.stop();
  }
}

async function killAtRandom(
  tollgate: Tollgate,
  load: Load,
  options: { seed: number; kills: number; print?: (line: string) => void },
): Promise<{ gatewayKills: number; jobsKills: number }> {
  const completeCount = (): number => load.seen.filter((response) => response.complete).length;
  const random = seededRandom(options.seed ^ 0x5eed);
  let gatewayKills = 0;
  let jobsKills = 0;
  for (let count = 1; count <= options.kills; count += 1) {
    const completeBefore = completeCount();
    await waitFor('the load to get through', completeCount, (complete) => complete >= completeBefore + COMPLETE_BETWEEN_KILLS);
    await pause(random() * 500);
    const hitsJobs = random() < JOBS_SHARE;
    const pids = hitsJobs ? [tollgate.jobsPid()] : tollgate.gatewayPids();
    const pid = pids[Math.floor(random() * pids.length)] ?? 0;
    process.kill(pid, 'SIGKILL');
    if (hitsJobs) jobsKills += 1;
    else gatewayKills += 1;
    options.print?.(`kill ${count} of ${options.kills}: ${hitsJobs ? 'jobs' : 'gateway'} ${pid}`);
    await waitFor(
      'the supervisor to replace what was killed',
      () => ({ gateways: tollgate.gatewayPids(), jobs: tollgate.jobsPid() }),
      ({ gateways, jobs }) => gateways.length === GATEWAY_PROCESSES && jobs !== 0 && jobs !== pid && !gateways.includes(pid),
    );
  }
  // What the last kill left behind meets load too.
  await pause(1000);
  return { gatewayKills, jobsKills };
}

/** Waits until the provider has ended every call, every complete response is posted and dead processes hold nothing; then reads the ledger. */
async function settle(ledger: LedgerView, seen: readonly SeenResponse[], provider: SimulatedProvider): Promise<GenerationRow[]> {
  await waitFor(
    'the provider to end every call',
    () => provider.starts().length - provider.ends().length,
    (open) => open === 0,
  );
  const ids = seen.filter((response) => response.complete).map((response) => response.executionId);
  await waitFor(
    'every complete response to be posted, and dead epochs to be returned',
    async () => {
      const [row] = await ledger.query(
        `SELECT (SELECT count(*)::int FROM generations WHERE id = ANY($1::uuid[]) AND billing_status = 'final') AS posted,
                (SELECT count(*)::int FROM generations WHERE outcome IS NULL) AS open,
                (SELECT count(*)::int FROM process_epochs WHERE kind = 'gateway' AND returned_at IS NULL) AS epochs`,
        [ids],
      );
      return { missing: ids.length - Number(row?.posted), open: Number(row?.open), epochs: Number(row?.epochs) };
    },
    ({ missing, open, epochs }) => missing === 0 && open === 0 && epochs <= GATEWAY_PROCESSES,
    60_000,
  ).catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`)); // The comparison below says which ones.
  // Facts follow the ledger within a shipping round.
  await pause(2000);
  return readGenerations(ledger);
}

function readFacts(dataDir: string): Promise<FactRow[]> {
  return queryFacts<FactRow>(
    dataDir,
    `SELECT toString(id) AS id, toString(tokens_prompt) AS tokens_prompt, toString(tokens_cached) AS tokens_cached,
            toString(tokens_completion) AS tokens_completion, toString(toInt128(total_cost * 1000000000000)) AS total_cost_pico, billing_status
     FROM request_facts FINAL`,
  );
}

function summarize(seen: readonly SeenResponse[], generations: readonly GenerationRow[]) {
  return {
    requests: seen.length,
    complete: seen.filter((response) => response.complete).length,
    cut: seen.filter((response) => response.status === 200 && !response.complete).length,
    generations: generations.length,
    chargedPico: generations.reduce((sum, row) => sum + BigInt(row.charge ?? 0), 0n),
    outcomes: countBy(generations, (row) => `${row.outcome ?? 'open'}/${row.billing_status}`),
    statuses: countBy(seen, (response) => String(response.status ?? 'none')),
  };
}

function countBy<T>(items: readonly T[], nameOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1;
  return counts;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, kills: { type: 'string', default: '50' } } });
  const report = await runKills({ seed: Number(values.seed), kills: Number(values.kills), print: (line) => process.stdout.write(`${line}\n`) });
  process.stdout.write(`${JSON.stringify({ ...report, chargedPico: report.chargedPico.toString() }, null, 2)}\n`);
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
