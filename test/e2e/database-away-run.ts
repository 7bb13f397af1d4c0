// Postgres is away under load: what holds a lease goes on, the rest is refused at once and told when to come again,
// nothing is lost, and once Postgres is back the backlog drains and all accounts agree. By hand: `node
// test/e2e/database-away-run.ts --seconds 120 --rate 200 --seed 1 [--how frozen] [--flaps 2]`.

import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { limitedKey, renderOrganization } from '../support/limited-organizations.ts';
import { listDescendants } from '../support/process-table.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { silentLog } from '../support/silent-log.ts';
import { startSimulatedProvider } from '../support/simulated-provider.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';
import { UNLIMITED } from './kill-world.ts';
import { settleAndCompareFacts } from './settle-accounts.ts';
import { type Answers, type SteadyAsker, SteadyLoad, summarizeAnswers } from './steady-load.ts';

const GATEWAY_PROCESSES = 2;
const WARM_SECONDS = 4;
const BACK_SECONDS = 4;
/** So long Postgres is back where it goes away once more. */
const FLAP_SECONDS = 1;
const STUCK_MS = 120_000;
/** Every so often somebody asks something else, too. */
const OTHERS_INTERVAL_MS = 1_000;

export type HowAway = 'stopped' | 'frozen';

export interface AwayReport {
  readonly how: HowAway;
  readonly requests: number;
  /** As in `SteadyLoad`. */
  readonly behindMs: number;
  readonly warm: Readonly<Record<string, Answers>>;
  readonly away: Readonly<Record<string, Answers>>;
  /** After it was back for a moment. */
  readonly awayAgain: Readonly<Record<string, Answers>>;
  readonly back: Readonly<Record<string, Answers>>;
  /** Everything else that was asked while Postgres was away: statuses, and the longest wait. */
  readonly others: Readonly<Record<string, { readonly statuses: Record<string, number>; longestMs: number }>>;
  readonly generations: number;
  readonly facts: number;
  readonly chargedPico: bigint;
  /** From when Postgres was back until everybody was served, and until everything was posted. */
  readonly backMs: { readonly served: number; readonly posted: number };
  readonly problems: readonly string[];
}

type Phase = 'warm' | 'away' | 'away again' | 'back';

interface Asker extends SteadyAsker {
  /** Has leased before Postgres goes away. */
  readonly isWarm: boolean;
  /** The only refusals it may meet while Postgres is away; none: it is always served. */
  readonly refusedBy: string | null;
}

const MODELS = [
  { id: 'sim/small', providerModel: 'sim-small', outputCap: 16_384, apis: ['chat_completions', 'responses'] },
] as const;
const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 2 } as const;
const ASKERS: readonly Asker[] = [
  // What it has leased lasts for a minute or so of this.
  {
    ...PLAIN,
    slug: 'acme',
    key: KEYS.acme,
    creditPico: OPENING_CREDIT_PICO,
    share: 0.5,
    isWarm: true,
    refusedBy: 'billing_unavailable',
  },
  { ...PLAIN, slug: 'calm', key: limitedKey('calm'), share: 0.1, isWarm: true, refusedBy: null },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null, share: 0.1, isWarm: true, refusedBy: null },
  { ...PLAIN, slug: 'cold', key: limitedKey('cold'), share: 0.15, isWarm: false, refusedBy: 'billing_unavailable' },
  {
    ...PLAIN,
    slug: 'narrow',
    key: limitedKey('narrow'),
    requestsPerMinute: 60_000,
    share: 0.15,
    isWarm: false,
    refusedBy: 'traffic_capacity_unavailable',
  },
];
const WARM_ASKERS = ASKERS.filter(({ isWarm }) => isWarm);
/** Half of what two processes served in half an hour of what they had leased for it. */
const CALM_REQUESTS_MAX = 3_500;

/** However long Postgres is away, calm asks for less than it has leased: who has used that up must be refused. */
function sparing(askers: readonly Asker[], { seconds, rate }: { seconds: number; rate: number }): readonly Asker[] {
  const shareMax = CALM_REQUESTS_MAX / (seconds * rate);
  return askers.map((asker) => (asker.slug === 'calm' ? { ...asker, share: Math.min(asker.share, shareMax) } : asker));
}

export async function runDatabaseAway(options: {
  seconds: number;
  rate: number;
  seed: number;
  how: HowAway;
  /** So often it is back for a moment, and goes away again for as long. */
  flaps?: number;
}): Promise<AwayReport> {
  const { how, flaps = 0, seconds } = options;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  const provider = await startSimulatedProvider();
  let postgres: EmbeddedPostgres | null = await startEmbeddedPostgres({ dataDir: directory, log: silentLog });
  let tollgate: Tollgate | null = null;
  try {
    const { url } = postgres;
    const env = { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') };
    tollgate = await startTollgate({
      ownPostgres: true,
      configurationYaml: configuration(provider.url),
      gatewayProcesses: GATEWAY_PROCESSES,
      env,
    });
    const load = new SteadyLoad<Phase>(tollgate.url, options);
    await meetEveryProcess(load, tollgate.url);
    await load.run('warm', WARM_ASKERS, WARM_SECONDS);

    await goAway(postgres, how);
    const others = askOthers(tollgate.url);
    await load.run('away', sparing(ASKERS, options), seconds);
    const othersFound = await others.stop();
    for (let flap = 0; flap < flaps; flap += 1) {
      postgres = await comeBack(postgres, { how, directory });
      await load.run('back', ASKERS, FLAP_SECONDS);
      await goAway(postgres, how);
      await load.run('away again', sparing(ASKERS, options), seconds);
    }

    const backAtMs = performance.now();
    postgres = await comeBack(postgres, { how, directory });
    await Promise.all([load.run('back', ASKERS, BACK_SECONDS), waitUntilServed(tollgate.url, load)]);
    const servedMs = performance.now() - backAtMs;
    await load.end();
    const result = await settleAndCompareFacts({
      tollgate,
      postgresUrl: url,
      provider,
      seen: load.sent.map(({ response }) => response),
      organizations: ASKERS,
    });
    return {
      how,
      requests: load.sent.length,
      behindMs: load.behindMs,
      warm: summarizeAnswers(load.sent, 'warm', ASKERS),
      away: summarizeAnswers(load.sent, 'away', ASKERS),
      awayAgain: summarizeAnswers(load.sent, 'away again', ASKERS),
      back: summarizeAnswers(load.sent, 'back', ASKERS),
      others: othersFound,
      generations: result.generations.length,
      facts: result.facts,
      chargedPico: result.chargedPico,
      backMs: { served: Math.round(servedMs), posted: Math.round(result.postedAtMs - backAtMs) },
      problems: [...result.problems, ...checkAnswers(load), ...checkOthers(othersFound)],
    };
  } finally {
    await tollgate?.stop();
    await provider.stop();
    await postgres?.stop();
    removeInstallation(directory);
  }
}

function configuration(upstreamUrl: string): string {
  const limited = ASKERS.filter(({ key }) => key.startsWith('tg-test-') && !Object.values<string>(KEYS).includes(key));
  return (
    testConfiguration({ upstreamUrl, models: MODELS }) +
    limited
      .map(({ slug, requestsPerMinute }) => {
        const limits = requestsPerMinute === null ? [] : [`{ kind: requests_per_minute, limit: ${requestsPerMinute} }`];
        return renderOrganization({ slug, credit: '1000', limits });
      })
      .join('')
  );
}

/**
 * Each process knows every credential and has leased for whoever is warm: each call comes on a connection of its own,
 * to whichever of them.
 */
async function meetEveryProcess(load: SteadyLoad<Phase>, url: string): Promise<void> {
  for (let round = 0; round < 16; round += 1) {
    for (const asker of ASKERS) {
      if (asker.isWarm) await load.start('warm', asker, { ownConnection: true });
      else await httpCall(`${url}/v1/models`, { headers: { authorization: `Bearer ${asker.key}` } });
    }
  }
}

/** `frozen`: nothing is closed and nothing answers. */
async function goAway(postgres: EmbeddedPostgres, how: HowAway): Promise<void> {
  if (how === 'frozen') {
    for (const pid of [postgres.pid, ...listDescendants(postgres.pid).map((entry) => entry.pid)])
      process.kill(pid, 'SIGSTOP');
    return;
  }
  process.kill(postgres.pid, 'SIGQUIT');
  await postgres.exited;
}

async function comeBack(
  postgres: EmbeddedPostgres,
  { how, directory }: { how: HowAway; directory: string },
): Promise<EmbeddedPostgres> {
  if (how === 'stopped') return startEmbeddedPostgres({ dataDir: directory, log: silentLog });
  for (const pid of [postgres.pid, ...listDescendants(postgres.pid).map((entry) => entry.pid)])
    process.kill(pid, 'SIGCONT');
  return postgres;
}

/** Questions that are not generations, and generations that need more than a lease; one at a time each. */
function askOthers(url: string): { stop(): Promise<AwayReport['others']> } {
  const found: Record<string, { statuses: Record<string, number>; longestMs: number }> = {};
  let stopping = false;
  const known = { authorization: `Bearer ${KEYS.acme}` };
  const continued = JSON.stringify({
    model: 'sim/small',
    input: 'go on',
    max_output_tokens: 5,
    previous_response_id: 'resp_unknown',
  });
  const questions: Readonly<Record<string, () => Promise<{ status: number }>>> = {
    'a credential that nobody has seen': () =>
      httpCall(`${url}/v1/models`, { headers: { authorization: `Bearer tg-${randomBytes(16).toString('hex')}` } }),
    'the list of models': () => httpCall(`${url}/v1/models`, { headers: known }),
    'a generation': () => httpCall(`${url}/v1/generation?id=01890a5d-ac96-774b-bcce-b302099a8057`, { headers: known }),
    'the limits': () => httpCall(`${url}/v1/usage/limits/current`, { headers: known }),
    'a continued response': () => httpCall(`${url}/v1/responses`, { headers: known, body: continued }),
  };
  const asking = Object.entries(questions).map(async ([name, question]) => {
    const entry = { statuses: {} as Record<string, number>, longestMs: 0 };
    found[name] = entry;
    while (!stopping) {
      const startedMs = performance.now();
      const status = String((await question().catch(() => ({ status: 'no answer' }))).status);
      entry.statuses[status] = (entry.statuses[status] ?? 0) + 1;
      entry.longestMs = Math.max(entry.longestMs, Math.round(performance.now() - startedMs));
      await pause(OTHERS_INTERVAL_MS);
    }
  });
  return {
    async stop() {
      stopping = true;
      await Promise.all(asking);
      return found;
    },
  };
}

const EXPECTED_OF_OTHERS: Readonly<Record<string, string>> = {
  'a credential that nobody has seen': '502',
  'the list of models': '200',
  'a generation': '503',
  'the limits': '200',
  'a continued response': '503',
};

function checkOthers(others: AwayReport['others']): string[] {
  return Object.entries(others).flatMap(([name, { statuses }]) => {
    const found = Object.keys(statuses).join(', ');
    return found === EXPECTED_OF_OTHERS[name] ? [] : [`${name}: answered with ${found}`];
  });
}

/** Each of them, several times in a row: every process is asked. */
async function waitUntilServed(url: string, load: SteadyLoad<Phase>): Promise<void> {
  for (const asker of ASKERS) {
    const headers = { authorization: `Bearer ${asker.key}` };
    await waitFor(
      `${asker.slug} to be let in`,
      async () => (await httpCall(`${url}/v1/models`, { headers })).status,
      (status) => status === 200,
      STUCK_MS,
    );
    let row = 0;
    const startedMs = performance.now();
    while (row < 8) {
      await load.start('back', asker);
      row = load.sent.at(-1)?.response.status === 200 ? row + 1 : 0;
      if (performance.now() - startedMs > STUCK_MS)
        throw new Error(`${asker.slug} is not served although Postgres is back`);
    }
  }
}

function checkAnswers(load: SteadyLoad<Phase>): string[] {
  const problems = load.countProblems(({ phase, response }) => {
    const { organization, status, refusal, retryAfter, complete } = response;
    const asker = ASKERS.find(({ slug }) => slug === organization);
    const isRefusable = phase !== 'warm' && refusal === asker?.refusedBy;
    const isExpected = status === 200 ? complete : status === 503 && isRefusable && retryAfter !== null;
    return isExpected
      ? null
      : `${organization}, ${phase}: ${status} ${refusal}, Retry-After ${retryAfter}, complete ${complete}`;
  });
  for (const { slug, refusedBy, isWarm } of ASKERS) {
    const served = load.sent.filter(
      ({ phase, response }) => phase === 'away' && response.organization === slug && response.status === 200,
    ).length;
    if (refusedBy !== null && !isWarm && served > 0)
      problems.push(`${slug} was served ${served} times without a lease`);
    if (isWarm && served === 0)
      problems.push(`${slug} was never served while Postgres was away, although it had a lease`);
  }
  return problems;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '120' },
      rate: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      how: { type: 'string', default: 'stopped' },
      flaps: { type: 'string', default: '0' },
    },
  });
  const how = values.how === 'frozen' ? 'frozen' : 'stopped';
  const report = await runDatabaseAway({
    seconds: Number(values.seconds),
    rate: Number(values.rate),
    seed: Number(values.seed),
    how,
    flaps: Number(values.flaps),
  });
  process.stdout.write(
    `${JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2)}\n`,
  );
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
