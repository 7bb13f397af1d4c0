// `tollgate load`: puts a load on any address that speaks one of the APIs, and prints latencies, first bytes, times
// between events and errors by kind.

import { writeFileSync } from 'node:fs';
import { StartFault } from '../installation/start-fault.ts';
import type { LoadPlan, LoadResult } from '../load/run-load.ts';
import { systemClock } from '../platform/clock.ts';
import {
  type Command,
  type CommandContext,
  expectPositionals,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';

export const loadCommand: Command = {
  usage: [
    'tollgate load --target URL --model M [--key K] [--rate N | --concurrency N] [--streamed] [--streams N] ' +
      '[--seconds N] [--api chat_completions|responses|messages] [--prompt TEXT] [--max-tokens N] ' +
      '[--timeout SECONDS] [--json FILE] [--hdr FILE]',
  ],
  summary:
    'Puts a load on any OpenAI-compatible address. --rate: requests a second, by a schedule that slow replies do ' +
    'not delay, with latencies from when each was due. --concurrency: requests that are always open. --streams: ' +
    'streams that are always open, beside either. --streamed: the requests of --rate or --concurrency are ' +
    "streams. The key is --key or TOLLGATE_KEY. --hdr writes HdrHistogram's log. Exit code 0: all replies were " +
    'good, 1: some were not.',
  run,
};

const OPTIONS = {
  target: { type: 'string' },
  key: { type: 'string' },
  model: { type: 'string' },
  rate: { type: 'string' },
  concurrency: { type: 'string' },
  streams: { type: 'string' },
  streamed: { type: 'boolean', default: false },
  seconds: { type: 'string', default: '10' },
  timeout: { type: 'string', default: '120' },
  api: { type: 'string', default: 'chat_completions' },
  prompt: { type: 'string', default: 'Say hello.' },
  'max-tokens': { type: 'string' },
  json: { type: 'string' },
  hdr: { type: 'string' },
} as const;

const RATE_MAX = 100_000;
const OPEN_MAX = 10_000;
const SECONDS_MAX = 86_400;
const TIMEOUT_SECONDS_MAX = 3_600;
const MAX_TOKENS_MAX = 1_000_000;
const LIVE_INTERVAL_MS = 1_000;
/** The exit codes that shells use for a command that a signal ended. */
const EXIT_INTERRUPTED = { SIGINT: 130, SIGTERM: 143 } as const;

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  expectPositionals(positionals, []);
  const plan = await readPlan(values, environment['TOLLGATE_KEY'] ?? '');
  // Opens the files before the load, so that an hour's load is not lost to a directory that does not exist.
  for (const path of [values.json, values.hdr]) if (path !== undefined) write(path, '', 'a');
  const { runLoad, tryOnce } = await import('../load/run-load.ts');
  const wrong = await tryOnce(plan, systemClock);
  if (wrong !== null)
    throw new StartFault(`${plan.request.origin}${plan.request.path}: one request before the load failed: ${wrong}`);
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => interrupt.abort(EXIT_INTERRUPTED[signal]));
  const live = await openLiveLine();
  const result = await runLoad(plan, systemClock, interrupt.signal, live.start);
  live.end();
  await report(result, values, print);
  if (interrupt.signal.aborted) return interrupt.signal.reason as number;
  return result.measurements.failed === 0 && result.measurements.good > 0 ? 0 : 1;
}

type Values = ReturnType<typeof parseArguments<typeof OPTIONS>>['values'];

async function readPlan(values: Values, keyOfEnvironment: string): Promise<LoadPlan> {
  const { LOAD_APIS, buildLoadRequest } = await import('../load/load-request.ts');
  const rate = readNumber('rate', values.rate, RATE_MAX);
  const concurrency = readWhole('concurrency', values.concurrency, OPEN_MAX) ?? 0;
  const streams = readWhole('streams', values.streams, OPEN_MAX) ?? 0;
  if (rate !== null && concurrency > 0) throw new UsageFault('--rate and --concurrency exclude each other');
  if (rate === null && concurrency === 0 && streams === 0)
    throw new UsageFault('--rate, --concurrency or --streams is missing');
  if (!Object.hasOwn(LOAD_APIS, values.api))
    throw new UsageFault(`unknown API "${values.api}"; there are ${Object.keys(LOAD_APIS).join(', ')}`);
  const key = values.key ?? keyOfEnvironment;
  if (/[^\x21-\x7e]/.test(key)) throw new UsageFault('--key has characters that no key has');
  const request = buildLoadRequest({
    target: readTarget(requireOption(values.target, 'target')),
    api: values.api,
    key,
    model: requireOption(values.model, 'model'),
    prompt: values.prompt,
    maxTokens: readWhole('max-tokens', values['max-tokens'], MAX_TOKENS_MAX),
  });
  return {
    request,
    rate,
    concurrency,
    areStreamed: values.streamed,
    streams,
    seconds: readNumber('seconds', values.seconds, SECONDS_MAX) ?? 0,
    timeoutMs: (readNumber('timeout', values.timeout, TIMEOUT_SECONDS_MAX) ?? 0) * 1_000,
  };
}

function readTarget(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.search !== '')
    throw new UsageFault(`--target "${text}" is not an http:// or https:// address`);
  return url;
}

/** null: the option was not given. */
function readNumber(name: string, text: string | undefined, max: number): number | null {
  if (text === undefined) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 && value <= max)) throw new UsageFault(`--${name} is "${text}": it takes a number up to ${max}`);
  return value;
}

function readWhole(name: string, text: string | undefined, max: number): number | null {
  const value = readNumber(name, text, max);
  if (value !== null && !Number.isInteger(value)) throw new UsageFault(`--${name} takes a whole number`);
  return value;
}

/**
 * Prints progress each second, only at a terminal, and on stderr, so that a file of stdout contains only the figures.
 */
async function openLiveLine() {
  const { renderLiveLine } = await import('../load/render-load.ts');
  let timer: NodeJS.Timeout | null = null;
  return {
    start: (measurements: LoadResult['measurements']): void => {
      if (!process.stderr.isTTY) return;
      const startMs = systemClock.monotonicMs();
      timer = setInterval(() => {
        const line = renderLiveLine(measurements, systemClock.monotonicMs() - startMs);
        process.stderr.write(`\r\x1b[K${line}`);
      }, LIVE_INTERVAL_MS);
    },
    end: (): void => {
      if (timer === null) return;
      clearInterval(timer);
      process.stderr.write('\r\x1b[K');
    },
  };
}

async function report(result: LoadResult, { json, hdr }: Values, print: CommandContext['print']): Promise<void> {
  const { histogramsOf, loadFigures, renderLoadText } = await import('../load/render-load.ts');
  const { renderHistogramLog } = await import('../load/histogram-log.ts');
  print(renderLoadText(result));
  if (json !== undefined) write(json, `${JSON.stringify(loadFigures(result), null, 2)}\n`);
  if (hdr !== undefined)
    write(hdr, renderHistogramLog(result.startedAtMs, result.elapsedMs, histogramsOf(result.measurements)));
}

/** With the `flag` `a` the file keeps its content. */
function write(path: string, text: string, flag: 'w' | 'a' = 'w'): void {
  try {
    writeFileSync(path, text, { flag });
  } catch (error) {
    throw new StartFault(`cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}
