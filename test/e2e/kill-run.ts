// A kill run: load over organizations rich and poor, and gateways, jobs and Postgres killed at moments drawn from a
// seed; afterwards all accounts must agree to the digit and no limit was passed. By hand: `node test/e2e/kill-run.ts
// --requests 200000 --kills 200 --seed 1 --victims gateway,jobs,postgres [--guardrails] [--reply-tokens 60]`.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { listQuarantine } from '../../src/storage/spool/spool-directory.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { untilPosted, untilShipped } from '../support/shipped-spool.ts';
import { type SimulatedProvider, startSimulatedProvider, untilCallsEnd } from '../support/simulated-provider.ts';
import { pause, waitFor } from '../support/waiting.ts';
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
import { compareGuardrails } from './kill-guardrail-accounts.ts';
import { type CloakAddress, readCloaks } from './kill-guardrails.ts';
import { budgetLeft, checkBudgets, checkLent, checkNothingLent, checkRates, checkRefusalsSeen } from './kill-limits.ts';
import { askOnce, type Load, type SeenResponse, startLoad } from './kill-load.ts';
import { findVictim, planKills, VICTIMS, type Victim } from './kill-victims.ts';
import {
  createKillWorld,
  type KillOrganization,
  type KillWorld,
  PROMPT_HOLD_PICO,
  REPLY_TOKENS_MAX,
  UNLIMITED_HOLD_PICO,
} from './kill-world.ts';

const GATEWAY_PROCESSES = 2;
/** How long anything may take on a busy machine before it counts as stuck. */
const STUCK_MS = 120_000;
const PROBLEMS_SHOWN = 40;
/** Of what an installation printed that did not come through, in characters. */
const OUTPUT_SHOWN = 10_000;

export interface KillOptions {
  readonly requests: number;
  readonly kills: number;
  readonly seed: number;
  readonly victims: readonly Victim[];
  /** Of some organizations a policy changes what passes. */
  readonly guardrails?: boolean;
  /** Of a reply, at the most: short ones make more requests of the same time. */
  readonly replyTokensMax?: number;
  readonly print?: (line: string) => void;
}

export interface KillReport {
  readonly seed: number;
  readonly seconds: { readonly load: number; readonly all: number };
  readonly requests: number;
  readonly complete: number;
  /** Replies that began and did not end. */
  readonly cut: number;
  /** What clients saw, by status and code. */
  readonly answers: Readonly<Record<string, number>>;
  readonly kills: Readonly<Record<string, number>>;
  readonly providerCalls: number;
  readonly generations: number;
  readonly facts: number;
  /** Executions by outcome and billing status. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** The same sum three times: what the provider says it served, what was charged or rated, what the facts say. */
  readonly picoUsd: { readonly provider: bigint; readonly ledger: bigint; readonly facts: bigint };
  /** Whole replies that died with their process before they were recorded; no client saw their end, nobody pays. */
  readonly unpaidReplies: number;
  /** How often something disagreed, and the first of the sentences; empty when all accounts agree. */
  readonly problemCount: number;
  readonly problems: readonly string[];
}

export async function runKills(options: KillOptions): Promise<KillReport> {
  const startedMs = performance.now();
  const world = createKillWorld(options.requests, options.guardrails, options.replyTokensMax);
  const masterKey = randomBytes(32);
  const provider = await startSimulatedProvider();
  let tollgate: Tollgate | null = null;
  let ledger: LedgerView | null = null;
  try {
    tollgate = await startTollgate({
      ownPostgres: true,
      configurationYaml: world.configuration(provider.url),
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { MASTER_KEY: masterKey.toString('base64') },
    });
    const cloaks = await readCloaksOnce(tollgate, masterKey, world);
    const loadStartedMs = performance.now();
    const { seed, replyTokensMax = REPLY_TOKENS_MAX } = options;
    const load = startLoad({ url: tollgate.url, seed, organizations: world.organizations, cloaks, replyTokensMax });
    const kills = await killAtRandom(tollgate, load, options);
    await waitUntilServed(load, options.requests);
    await load.stop();
    const loadMs = performance.now() - loadStartedMs;
    ledger = openLedgerView(tollgate.postgresUrl);
    await settle(tollgate, ledger, provider);
    const rest = await spendTheRest(tollgate, ledger, world, cloaks);
    const lent = await rollAndLookForLeases(tollgate, ledger);
    await settle(tollgate, ledger, provider);
    const seen = [...load.seen, ...rest.seen];
    const checked = await checkEverything({ tollgate, ledger, provider, world, seen });
    const generations = await readGenerations(ledger);
    await ledger.close();
    ledger = null;
    await tollgate.stop({ keepData: true });
    const facts = await readFacts(tollgate.dataDir);
    const setAside = readSetAside(join(tollgate.dataDir, 'spool'));
    const problems = [
      ...rest.problems,
      ...lent,
      ...checked.problems,
      ...compareLedgerWithFacts(generations, facts.rows),
      ...setAside,
    ];
    return {
      seed: options.seed,
      seconds: { load: Math.round(loadMs / 1_000), all: Math.round((performance.now() - startedMs) / 1_000) },
      ...summarize(seen),
      kills,
      providerCalls: checked.providerCalls,
      generations: generations.length,
      facts: facts.rows.length,
      outcomes: countBy(generations, (row) => `${row.outcome ?? 'open'}/${row.billing_status}`),
      picoUsd: {
        provider: checked.servedPico,
        ledger: sumOf(generations, (row) => row.rated_cost),
        facts: facts.ratedPico,
      },
      unpaidReplies: checked.unpaidReplies,
      problemCount: problems.length,
      problems: problems.slice(0, PROBLEMS_SHOWN),
    };
  } catch (fault) {
    process.stderr.write(`the end of what the installation printed:\n${tollgate?.output().slice(-OUTPUT_SHOWN)}\n`);
    throw fault;
  } finally {
    await ledger?.close();
    await tollgate?.stop();
    await provider.stop();
  }
}

async function readCloaksOnce(tollgate: Tollgate, masterKey: Buffer, { organizations }: KillWorld) {
  const ledger = openLedgerView(tollgate.postgresUrl);
  try {
    return await readCloaks(ledger, masterKey, organizations);
  } finally {
    await ledger.close();
  }
}

/** No kill damages what is written: nothing may be in quarantine. */
function readSetAside(spoolDirectory: string): string[] {
  return listQuarantine(spoolDirectory).map(
    (name) => `set aside: ${name}: ${readFileSync(join(spoolDirectory, 'quarantine', name), 'latin1')}`,
  );
}

async function killAtRandom(tollgate: Tollgate, load: Load, options: KillOptions): Promise<Record<string, number>> {
  const kills: Record<string, number> = {};
  for (const [index, kill] of planKills(options).entries()) {
    await waitUntilServed(load, kill.afterRequests);
    await pause(kill.delayMs);
    // Who is already dead is killed when it is back.
    const found = await waitFor(
      `a ${kill.victim} to kill`,
      () => findVictim(tollgate, kill),
      (victim) => victim !== null,
      STUCK_MS,
    );
    if (found === null) break;
    const { pid, signal, how } = found;
    process.kill(pid, signal);
    const name = `${kill.victim}: ${how}`;
    kills[name] = (kills[name] ?? 0) + 1;
    options.print?.(`kill ${index + 1} of ${options.kills} after ${load.served()} requests: ${name} (${pid})`);
  }
  return kills;
}

/** However long that takes, as long as it goes on. */
async function waitUntilServed(load: Load, count: number): Promise<void> {
  let served = load.served();
  let sinceMs = performance.now();
  while (load.served() < count) {
    await pause(20);
    if (load.served() > served) {
      served = load.served();
      sinceMs = performance.now();
    } else if (performance.now() - sinceMs > STUCK_MS)
      throw new Error(`nothing was served for ${STUCK_MS} ms, after ${served} requests`);
  }
}

/**
 * Waits until everything runs again, the provider has ended every call, and every execution has an end and every dead
 * process is closed.
 */
async function settle(tollgate: Tollgate, ledger: LedgerView, provider: SimulatedProvider): Promise<void> {
  await waitFor(
    'the installation to be ready',
    async () => (await httpCall(`${tollgate.adminUrl}/readyz`)).body.toString(),
    (text) => text === 'ready\n',
    STUCK_MS,
  );
  await untilCallsEnd(provider);
  await waitFor(
    'every execution to have an end, and dead processes to be closed',
    async () => {
      const [row] = await ledger.query(
        `SELECT (SELECT count(*)::int FROM generations WHERE billing_status = 'pending') AS pending,
                (SELECT count(*)::int FROM process_epochs WHERE kind = 'gateway' AND returned_at IS NULL) AS epochs`,
      );
      return { pending: Number(row?.pending), epochs: Number(row?.epochs) };
    },
    ({ pending, epochs }) => pending === 0 && epochs <= GATEWAY_PROCESSES,
    STUCK_MS,
  ).catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`)); // The comparisons below say what is wrong.
  await untilShipped(tollgate, ledger);
}

/** Who can spend what is left, and how the refusal says that nothing is. */
const RUNS_OUT = { thin: 'insufficient_credit', unlimited: 'usage_limit_exceeded' } as const;
/** Of a long run more may be left than is worth spending. */
const REST_REQUESTS_MAX = 1_000;

/**
 * Nobody is refused while the money of the wallet, or the room of the budget, covers a request, wherever the dead had
 * left it: the rest of it can be spent.
 */
async function spendTheRest(
  tollgate: Tollgate,
  ledger: LedgerView,
  world: KillWorld,
  cloaks: ReadonlyMap<string, CloakAddress>,
): Promise<{ seen: readonly SeenResponse[]; problems: string[] }> {
  const seen: SeenResponse[] = [];
  const problems: string[] = [];
  for (const [slug, refusal] of Object.entries(RUNS_OUT)) {
    const organization = world.organizations.find((one) => one.slug === slug);
    if (organization === undefined) continue;
    const asked: SeenResponse[] = [];
    let answer: SeenResponse;
    do {
      answer = await askOnce(tollgate.url, organization, `rest-${slug}-${asked.length}`, cloaks.get(slug));
      asked.push(answer);
    } while (answer.status === 200 && asked.length < REST_REQUESTS_MAX);
    seen.push(...asked);
    if (answer.status === 200) continue;
    if (answer.refusal !== refusal)
      problems.push(`${slug}: the rest of its money was refused with ${answer.status} ${answer.refusal}`);
    else {
      // Until then the books say that too much is left.
      await untilPosted(ledger, asked);
      const { left, hold } = await whatIsLeft(ledger, organization);
      if (left >= hold) problems.push(`${slug}: refused with ${left} left, where a request holds ${hold} at most`);
    }
  }
  return { seen, problems };
}

async function whatIsLeft(
  ledger: LedgerView,
  { slug, budgetPico }: KillOrganization,
): Promise<{ left: bigint; hold: bigint }> {
  if (budgetPico !== null)
    return { left: await budgetLeft(ledger, slug, budgetPico), hold: UNLIMITED_HOLD_PICO + PROMPT_HOLD_PICO };
  const [row] = await ledger.query(
    `SELECT max(g.authorized_amount)::text AS hold FROM generations g JOIN organizations o ON o.id = g.organization_id
      WHERE o.slug = $1`,
    [slug],
  );
  const { balance } = await ledger.wallet(slug);
  return { left: balance, hold: BigInt(String(row?.hold)) };
}

/** A rolling restart: every process hands back what it has, so nothing may be left lent. */
async function rollAndLookForLeases(tollgate: Tollgate, ledger: LedgerView): Promise<string[]> {
  const problems = await checkLent(ledger);
  const before = tollgate.gatewayPids();
  process.kill(tollgate.pid, 'SIGHUP');
  await waitFor(
    'every gateway to be replaced',
    () => tollgate.gatewayPids(),
    (pids) => pids.length === GATEWAY_PROCESSES && pids.every((pid) => !before.includes(pid)),
    STUCK_MS,
  );
  const left = await waitFor(
    'nothing to be lent',
    () => checkNothingLent(ledger),
    (lent) => lent.length === 0,
    30_000,
  ).catch(() => checkNothingLent(ledger));
  return [...problems, ...left];
}

interface Ended {
  readonly tollgate: Tollgate;
  readonly ledger: LedgerView;
  readonly provider: SimulatedProvider;
  readonly world: KillWorld;
  readonly seen: readonly SeenResponse[];
}

async function checkEverything({ tollgate, ledger, provider, world, seen }: Ended) {
  const generations = await readGenerations(ledger);
  const calls = { starts: provider.starts(), ends: provider.ends() };
  const compared = compareProviderWithLedger(calls, seen, generations);
  const reconciled = await tollgate.run(['reconcile']);
  const problems = [
    ...compareSeenWithLedger(seen, generations),
    ...compared.problems,
    ...checkBounds(compared.chargedByBound, tollgate.output()),
    ...(await compareWallets(ledger, world.organizations, generations)),
    ...(await checkBudgets(ledger, world.organizations, generations)),
    ...checkRates(world.organizations, seen, calls),
    ...checkRefusalsSeen(seen),
    ...compareGuardrails(world.organizations, seen, generations),
    ...(await checkBooks(tollgate.postgresUrl)),
    ...(await checkDead(ledger)),
    ...(reconciled.exitCode === 0 ? [] : [`tollgate reconcile: ${reconciled.output}`]),
  ];
  return {
    problems,
    providerCalls: calls.starts.length,
    servedPico: compared.servedPico,
    unpaidReplies: compared.unpaidReplies,
  };
}

/** Every process that died is closed, whenever in its life it died. */
async function checkDead(ledger: LedgerView): Promise<string[]> {
  const rows = await ledger.query(
    "SELECT epoch::text FROM process_epochs WHERE kind = 'gateway' AND returned_at IS NULL ORDER BY epoch",
  );
  const dead = rows.slice(0, Math.max(0, rows.length - GATEWAY_PROCESSES)).map((row) => row.epoch);
  return dead.length === 0 ? [] : [`epochs of dead processes that are not closed: ${dead.join(', ')}`];
}

function summarize(seen: readonly SeenResponse[]) {
  return {
    requests: seen.length,
    complete: seen.filter((response) => response.complete).length,
    cut: seen.filter(({ status, complete, guardrails }) => status === 200 && !complete && guardrails.blocked === null)
      .length,
    answers: countBy(seen, ({ status, refusal }) =>
      status === null ? 'no answer' : refusal === null ? String(status) : `${status} ${refusal}`,
    ),
  };
}

function sumOf(rows: readonly GenerationRow[], amountOf: (row: GenerationRow) => string | null): bigint {
  return rows.reduce((sum, row) => sum + BigInt(amountOf(row) ?? 0), 0n);
}

function countBy<T>(items: readonly T[], nameOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1;
  return counts;
}

function readVictims(text: string): Victim[] {
  return text.split(',').map((name) => {
    const victim = VICTIMS.find((known) => known === name);
    if (victim === undefined) throw new Error(`--victims: "${name}" is none of ${VICTIMS.join(', ')}`);
    return victim;
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string', default: '200000' },
      kills: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      victims: { type: 'string', default: VICTIMS.join(',') },
      guardrails: { type: 'boolean', default: false },
      'reply-tokens': { type: 'string', default: String(REPLY_TOKENS_MAX) },
    },
  });
  const report = await runKills({
    requests: Number(values.requests),
    kills: Number(values.kills),
    seed: Number(values.seed),
    victims: readVictims(values.victims),
    guardrails: values.guardrails,
    replyTokensMax: Number(values['reply-tokens']),
    print: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problemCount === 0 ? 0 : 1;
}
