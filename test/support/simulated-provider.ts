// Runs the simulated provider as its own process for a test and reads back the log of what it served.

import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CallEnd, CallStart } from '../../src/simulator/call-log.ts';
import { waitFor } from './waiting.ts';

export interface SimulatedProvider {
  readonly url: string;
  readonly pid: number;
  /** The file of its log, for tests that read it line by line: a long log is larger than a string can be. */
  readonly logPath: string;
  /** Calls that began, in order. */
  starts(): CallStart[];
  /** Calls that ended, in order of their ends. */
  ends(): CallEnd[];
  /** Calls that began and did not end. */
  openCalls(): number;
  /**
   * Waits until no call is open, and returns the end of the call that began last: an end is logged shortly after its
   * reply was read.
   */
  lastEnd(): Promise<CallEnd>;
  stop(): Promise<void>;
}

/** How long calls may take to end on a busy machine before they count as stuck. */
const STUCK_MS = 120_000;

export async function untilCallsEnd(provider: Pick<SimulatedProvider, 'openCalls'>): Promise<void> {
  await waitFor(
    'the provider to end every call',
    () => provider.openCalls(),
    (open) => open === 0,
    STUCK_MS,
  );
}

export async function startSimulatedProvider(options: { delayMs?: number } = {}): Promise<SimulatedProvider> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-simulator-'));
  const logPath = join(directory, 'calls.jsonl');
  const main = fileURLToPath(new URL('../../src/simulator/main.ts', import.meta.url));
  const child = fork(main, ['--port', '0', '--log', logPath, '--delay-ms', String(options.delayMs ?? 0)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  const url = await listeningUrl(child);
  const lines = (): (CallStart | CallEnd)[] => (existsSync(logPath) ? parseLines(readFileSync(logPath, 'utf8')) : []);
  return {
    url,
    pid: child.pid as number,
    logPath,
    starts: () => lines().filter((line) => line.type === 'start'),
    ends: () => lines().filter((line) => line.type === 'end'),
    openCalls: countOpenCalls(logPath),
    async lastEnd() {
      const all = await waitFor(
        'every call to end',
        lines,
        (found) => found.length > 0 && found.filter(({ type }) => type === 'end').length * 2 === found.length,
      );
      const last = all.findLast(({ type }) => type === 'start');
      return all.find((line) => line.type === 'end' && line.id === last?.id) as CallEnd;
    },
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await ended;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function listeningUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the simulated provider ended with ${code} before it listened`)));
    child.once('message', (message) => resolve((message as { url: string }).url));
  });
}

/** Counts the calls in a log that began and did not end; each call of the returned function reads only the new part. */
export function countOpenCalls(logPath: string): () => number {
  let readBytes = 0;
  let open = 0;
  return () => {
    if (!existsSync(logPath)) return 0;
    const log = openSync(logPath, 'r');
    const fresh = Buffer.alloc(fstatSync(log).size - readBytes);
    readSync(log, fresh, 0, fresh.length, readBytes);
    closeSync(log);
    const whole = fresh.subarray(0, fresh.lastIndexOf('\n') + 1);
    readBytes += whole.length;
    for (const line of whole.toString('utf8').split('\n')) {
      if (line.startsWith('{"type":"start"')) open += 1;
      else if (line.startsWith('{"type":"end"')) open -= 1;
    }
    return open;
  };
}

function parseLines(text: string): (CallStart | CallEnd)[] {
  // A line that is still being written has no end yet.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CallStart | CallEnd);
}
