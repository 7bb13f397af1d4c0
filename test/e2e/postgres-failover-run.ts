// Postgres fails over under load: the writer is killed with all its processes, its synchronous standby takes over
// behind the same address, and the dead one comes back as the standby, over and over. Whoever has leased goes on
// meanwhile, no commit is forgotten, and all accounts agree. By hand: `node test/e2e/postgres-failover-run.ts
// --failovers 5 --rate 60 --seed 1`; it needs Debian's patroni, etcd-server, haproxy and postgresql, and root.

import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startTollgate } from '../support/gateway.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { PatroniCluster } from '../support/patroni-cluster.ts';
import { startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { UNLIMITED } from './kill-world.ts';
import { settleAndCompareFacts } from './settle-accounts.ts';
import { type Answers, type SteadyAsker, SteadyLoad, summarizeAnswers } from './steady-load.ts';

const GATEWAY_PROCESSES = 2;
const WARM_SECONDS = 6;
/** Between two failovers: leases are taken anew, and what waited is posted. */
const CALM_SECONDS = 10;

const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 2 } as const;
/** Each has leased for longer than a failover takes, so nobody may be refused. */
const ASKERS: readonly SteadyAsker[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme, creditPico: OPENING_CREDIT_PICO, share: 0.7 },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm'), share: 0.1 },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null, share: 0.2 },
];

export interface FailoverReport {
  readonly requests: number;
  /** As in `SteadyLoad`. */
  readonly behindMs: number;
  /** How long each took until somebody wrote again. */
  readonly failoverMs: readonly number[];
  readonly away: Readonly<Record<string, Answers>>;
  readonly generations: number;
  readonly facts: number;
  readonly servedPico: bigint;
  readonly chargedPico: bigint;
  readonly problems: readonly string[];
}

export async function runPostgresFailover(options: {
  failovers: number;
  rate: number;
  seed: number;
}): Promise<FailoverReport> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const provider = await startSimulatedProvider();
    undo.push(() => provider.stop());
    const cluster = await PatroniCluster.start();
    undo.push(() => cluster.stop());
    const tollgate = await startTollgate({
      configurationYaml:
        testConfiguration({ upstreamUrl: provider.url }) + renderOrganization({ slug: 'calm', credit: '1000' }),
      gatewayProcesses: GATEWAY_PROCESSES,
      env: { DATABASE_URL: cluster.url, MASTER_KEY: randomBytes(32).toString('base64') },
    });
    undo.push(() => tollgate.stop());
    const load = new SteadyLoad<'calm' | 'away'>(tollgate.url, options);
    for (let round = 0; round < 16; round += 1)
      for (const asker of ASKERS) await load.start('calm', asker, { ownConnection: true });
    await load.run('calm', ASKERS, WARM_SECONDS);
    const failoverMs: number[] = [];
    for (let failover = 0; failover < options.failovers; failover += 1) {
      const over = cluster.killLeader();
      await load.run('away', ASKERS, over);
      failoverMs.push(Math.round(await over));
      await Promise.all([load.run('calm', ASKERS, CALM_SECONDS), cluster.restoreStandby()]);
    }
    await load.end();
    const result = await settleAndCompareFacts({
      tollgate,
      postgresUrl: cluster.url,
      provider,
      seen: load.sent.map(({ response }) => response),
      organizations: ASKERS,
    });
    return {
      requests: load.sent.length,
      behindMs: load.behindMs,
      failoverMs,
      away: summarizeAnswers(load.sent, 'away', ASKERS),
      generations: result.generations.length,
      facts: result.facts,
      servedPico: result.servedPico,
      chargedPico: result.chargedPico,
      problems: [...result.problems, ...checkAnswers(load)],
    };
  } finally {
    // Each is ended, whatever the others say.
    for (const one of undo.toReversed())
      await one().catch((fault: unknown) => process.stderr.write(`${String(fault)}\n`));
  }
}

function checkAnswers(load: SteadyLoad<'calm' | 'away'>): string[] {
  return load.countProblems(({ phase, response: { organization, status, refusal, complete } }) =>
    status === 200 && complete ? null : `${organization}, ${phase}: ${status} ${refusal}, complete ${complete}`,
  );
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      failovers: { type: 'string', default: '5' },
      rate: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
    },
  });
  const report = await runPostgresFailover({
    failovers: Number(values.failovers),
    rate: Number(values.rate),
    seed: Number(values.seed),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
