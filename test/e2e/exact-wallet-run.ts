// Parallel requests over several gateway processes on wallets that afford exactly so many: exactly so many are
// answered, round for round. By hand: `node test/e2e/exact-wallet-run.ts --rounds 200 --seed 1`.

import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { startTollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import {
  chatBody,
  type LimitedOrganization,
  limitedConfiguration,
  limitedKey,
  PICO_PER_OUTPUT_TOKEN,
  startExactProvider,
} from '../support/limited-organizations.ts';
import { decimalOfPico } from '../support/test-configuration.ts';

const GATEWAY_PROCESSES = 4;
const PARALLEL = 500;
const AFFORDED = 7;

interface Round {
  readonly organization: LimitedOrganization;
  readonly outputTokens: number;
}

export interface ExactWalletReport {
  readonly rounds: number;
  readonly requests: number;
  /** How many rounds had how many answers. */
  readonly answered: Readonly<Record<string, number>>;
  /** Of the others, by status and code. */
  readonly refused: Readonly<Record<string, number>>;
  readonly providerCalls: number;
  /** From the first request of a round to its last answer. */
  readonly roundMs: { readonly median: number; readonly longest: number };
  /** Empty when every round was exact. */
  readonly problems: readonly string[];
}

export async function runExactWallets(options: {
  rounds: number;
  seed: number;
  print?: (line: string) => void;
}): Promise<ExactWalletReport> {
  const rounds = drawRounds(options.rounds, options.seed);
  const provider = await startExactProvider();
  const configurationYaml = limitedConfiguration(
    provider.url,
    rounds.map(({ organization }) => organization),
  );
  const tollgate = await startTollgate({ configurationYaml, gatewayProcesses: GATEWAY_PROCESSES }).catch(
    async (fault: unknown) => {
      await provider.close();
      throw fault;
    },
  );
  try {
    const answered: Record<string, number> = {};
    const refused: Record<string, number> = {};
    const problems: string[] = [];
    const durationsMs: number[] = [];
    for (const [index, round] of rounds.entries()) {
      const callsBefore = provider.requests.length;
      const startedMs = performance.now();
      const answers = await Promise.all(Array.from({ length: PARALLEL }, () => ask(tollgate.url, round)));
      durationsMs.push(performance.now() - startedMs);
      const served = answers.filter((answer) => answer === '200').length;
      const calls = provider.requests.length - callsBefore;
      add(answered, String(served));
      for (const answer of answers) if (answer !== '200') add(refused, answer);
      const others = answers.filter((answer) => answer !== '200' && answer !== '402 insufficient_credit');
      if (served !== AFFORDED || calls !== AFFORDED || others.length > 0) {
        problems.push(
          `round ${index}: ${served} answered, ${calls} provider calls, others: ${[...new Set(others)].join(', ')}`,
        );
      }
      options.print?.(`round ${index}: ${served} of ${PARALLEL} answered in ${Math.round(durationsMs.at(-1) ?? 0)} ms`);
    }
    durationsMs.sort((first, second) => first - second);
    const roundMs = {
      median: Math.round(durationsMs[durationsMs.length >> 1] ?? 0),
      longest: Math.round(durationsMs.at(-1) ?? 0),
    };
    return {
      rounds: rounds.length,
      requests: rounds.length * PARALLEL,
      answered,
      refused,
      providerCalls: provider.requests.length,
      roundMs,
      problems,
    };
  } finally {
    await tollgate.stop();
    await provider.close();
  }
}

/** Each with a wallet of its own, which affords so many requests and a part of another. */
function drawRounds(count: number, seed: number): Round[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const outputTokens = 1 + Math.floor(random() * 1_000);
    const hold = BigInt(outputTokens) * PICO_PER_OUTPUT_TOKEN;
    const rest = BigInt(Math.floor(random() * Number(hold)));
    return {
      organization: { slug: `round-${index}`, credit: decimalOfPico(hold * BigInt(AFFORDED) + rest) },
      outputTokens,
    };
  });
}

/** Status, and the code of a refusal. */
async function ask(url: string, { organization, outputTokens }: Round): Promise<string> {
  const headers = { authorization: `Bearer ${limitedKey(organization.slug)}`, 'content-type': 'application/json' };
  const { status, body } = await httpCall(`${url}/v1/chat/completions`, { headers, body: chatBody(outputTokens) });
  return status === 200 ? '200' : `${status} ${String((JSON.parse(body.toString()) as { error: unknown }).error)}`;
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seed: { type: 'string', default: '1' }, rounds: { type: 'string', default: '200' } },
  });
  const report = await runExactWallets({
    seed: Number(values.seed),
    rounds: Number(values.rounds),
    print: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
