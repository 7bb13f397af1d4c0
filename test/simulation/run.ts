// Runs seeds of the simulation; one that fails is run again for its event log, and so is one that is named.
//
//   node test/simulation/run.ts --seeds 1000000 [--from N] [--workers W]
//   node test/simulation/run.ts --seed N [--lines L]
//   node test/simulation/run.ts --mutations [--seeds 3000]         each planted fault: by which seed it is found
//   node test/simulation/run.ts --mutation "a revocation is not heard" [--seeds N | --seed N]

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MUTATIONS, plant } from './mutations.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    lines: { type: 'string', default: '1000000' },
    failures: { type: 'string', default: '1' },
    mutation: { type: 'string' },
    mutations: { type: 'boolean', default: false },
  },
});

/** How many lines of the event log of a failed seed are shown. */
const LINES_SHOWN = 80;
/** How often progress is printed: an interrupted run is known up to the last such line. */
const SEEDS_A_LINE = 5_000;

if (values.mutations) await runMutations();
else if (Number(values.workers) > 1) await runWorkers(Math.min(Number(values.workers), availableParallelism()));
else await runHere();

async function runHere(): Promise<void> {
  const mutation = values.mutation === undefined ? undefined : MUTATIONS.find(({ name }) => name === values.mutation);
  if (values.mutation !== undefined && mutation === undefined) throw new Error(`no mutation "${values.mutation}"`);
  if (mutation !== undefined) plant(mutation);
  const { simulate } = await import('./simulate.ts');
  const showOne = (seed: number, lines: number): void => {
    const { log, violations, events, requests, complete, virtualMs } = simulate(seed, true);
    for (const line of (log ?? []).slice(-lines)) console.log(line);
    console.log(
      `seed ${seed}: ${events} events, ${requests} requests, ${complete} complete, ${(virtualMs / 1_000).toFixed(1)} s; ${violations.length} violations`,
    );
    for (const violation of violations) console.log(`  ${violation}`);
    if (violations.length > 0) process.exitCode = 1;
  };
  const runMany = (from: number, count: number): void => {
    const startedMs = performance.now();
    let [seed, events, requests, complete, failures] = [from, 0, 0, 0, 0];
    const sum = (seeds: string): void => {
      const seconds = (performance.now() - startedMs) / 1_000;
      console.log(
        `${seeds} seeds from ${from} in ${seconds.toFixed(1)} s: ${failures} failed, ${events} events, ${requests} requests, ${complete} complete`,
      );
    };
    for (; seed < from + count && failures < Number(values.failures); seed += 1) {
      if (seed > from && (seed - from) % SEEDS_A_LINE === 0) sum(`${seed - from} of ${count}`);
      const result = simulate(seed);
      events += result.events;
      requests += result.requests;
      complete += result.complete;
      if (result.violations.length === 0) continue;
      failures += 1;
      console.log(`seed ${seed} fails: ${result.violations.join('; ')}`);
      if (mutation === undefined) showOne(seed, Math.min(LINES_SHOWN, Number(values.lines)));
      console.log(`again: node test/simulation/run.ts --seed ${seed}`);
      process.exitCode = 1;
    }
    sum(String(seed - from));
  };
  // Starts in its own tick: promises can be drained between two events only while no promise is running.
  setImmediate(() =>
    values.seed === undefined
      ? runMany(Number(values.from), Number(values.seeds))
      : showOne(Number(values.seed), Number(values.lines)),
  );
}

async function runWorkers(workers: number): Promise<void> {
  const [from, seeds] = [Number(values.from), Number(values.seeds)];
  const share = Math.ceil(seeds / workers);
  const ranges = Array.from({ length: workers }, (_, index) => ({
    from: from + index * share,
    seeds: Math.min(share, seeds - index * share),
  }));
  const ended = await Promise.all(
    ranges.map((range) => runChild(['--from', `${range.from}`, '--seeds', `${range.seeds}`], process.stdout)),
  );
  if (ended.some(({ code }) => code !== 0)) process.exitCode = 1;
}

async function runMutations(): Promise<void> {
  for (const { name } of MUTATIONS) {
    const { code, output } = await runChild(['--mutation', name, '--seeds', values.seeds], null);
    const found = /seed (\d+) fails: (.*)/.exec(output);
    if (found === null || code === 0) process.exitCode = 1;
    console.log(
      found === null
        ? `NOT FOUND  ${name}\n${output}`
        : `${(found[1] ?? '').padStart(6)}  ${name}: ${(found[2] ?? '').slice(0, 140)}`,
    );
  }
}

function runChild(
  args: readonly string[],
  echo: NodeJS.WritableStream | null,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      echo?.write(text);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
