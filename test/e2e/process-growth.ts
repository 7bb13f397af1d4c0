// What the processes of an installation take while they serve: memory, file descriptors and the delay of their event
// loops, sampled in a run, and how much of it grows in an hour.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type MemoryNote, readMemoryNote } from '../support/note-memory.ts';
import { listDescendants } from '../support/process-table.ts';

const ROLES = ['gateway', 'jobs', 'supervisor', 'postgres'] as const;
type Role = (typeof ROLES)[number];

export interface ProcessSample {
  /** Gateways are numbered in the order of their pids; all processes of Postgres are one. */
  readonly name: string;
  readonly atMs: number;
  /** What is its own, and its part of what it shares with others. */
  readonly residentBytes: number;
  readonly descriptors: number;
  /** Since it began. */
  readonly cpuSeconds: number;
  /** null: Postgres. */
  readonly memory: MemoryNote | null;
}

/** What was taken of one thing: at the end of the warm-up, at most, at the end, and what a line through all adds. */
export interface Growth {
  readonly first: number;
  readonly most: number;
  readonly last: number;
  readonly perHour: number;
  /** Of the second half alone: what fills once has done so by then. */
  readonly perHourLate: number;
}

export interface ProcessGrowth {
  readonly residentMegabytes: Growth;
  readonly heapMegabytes: Growth | null;
  readonly externalMegabytes: Growth | null;
  readonly descriptors: Growth;
  readonly loopDelayMs: { readonly worst: number; readonly worstP99: number; readonly medianMax: number } | null;
}

/** Every process of an installation, now. */
export function sampleProcesses(supervisorPid: number, notes: string): ProcessSample[] {
  const atMs = performance.now();
  const byRole: Record<Role, number[]> = { gateway: [], jobs: [], supervisor: [supervisorPid], postgres: [] };
  for (const { pid, command } of listDescendants(supervisorPid)) {
    const role = /main\.ts (gateway|jobs)\b/.exec(command)?.[1] as Role | undefined;
    byRole[role ?? 'postgres'].push(pid);
  }
  return ROLES.flatMap((role) => {
    const found = byRole[role].toSorted((one, other) => one - other).map((pid) => measure(pid, notes));
    if (role !== 'postgres')
      return found.map((one, index) => ({ ...one, name: role === 'gateway' ? `gateway-${index + 1}` : role, atMs }));
    const sum = (of: (one: Measured) => number): number => found.reduce((total, one) => total + of(one), 0);
    const together = {
      residentBytes: sum((one) => one.residentBytes),
      descriptors: sum((one) => one.descriptors),
      cpuSeconds: sum((one) => one.cpuSeconds),
    };
    return [{ ...together, name: role, atMs, memory: null }];
  });
}

type Measured = Pick<ProcessSample, 'residentBytes' | 'descriptors' | 'cpuSeconds' | 'memory'>;

/** Of the kernel's clock in which it counts CPU time. */
const TICKS_PER_SECOND = 100;

/** Of a process that has ended: nothing. */
export function measure(pid: number, notes: string): Measured {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    const residentBytes = Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1_024;
    const descriptors = countDescriptors(pid);
    return { residentBytes, descriptors, cpuSeconds, memory: readMemoryNote(notes, pid) };
  } catch {
    return { residentBytes: 0, descriptors: 0, cpuSeconds: 0, memory: null };
  }
}

/** Where there are so many, looking at each would hold up who asks. */
const LOOKED_AT_MAX = 2_000;

/**
 * Without those of the statistics that ClickHouse keeps of each thread of its pool, three of one from its first
 * statement on: they become as many as its threads, and say nothing of what is left open.
 */
function countDescriptors(pid: number): number {
  const directory = `/proc/${pid}/fd`;
  const names = readdirSync(directory);
  if (names.length > LOOKED_AT_MAX) return names.length;
  return names.filter((name) => !leadsToTask(`${directory}/${name}`)).length;
}

function leadsToTask(path: string): boolean {
  try {
    return /^\/proc\/\d+\/task\//.test(readlinkSync(path));
  } catch {
    return false;
  }
}

/** By process. What came before `warmMs` counts for nothing but the delays. */
export function summarizeGrowth(samples: readonly ProcessSample[], warmMs: number): Record<string, ProcessGrowth> {
  const found: Record<string, ProcessGrowth> = {};
  for (const name of new Set(samples.map((sample) => sample.name))) {
    const own = samples.filter((sample) => sample.name === name);
    const all = own.flatMap(({ memory }) => (memory === null ? [] : [memory]));
    const kept = own.filter(({ atMs }) => atMs >= warmMs);
    const growth = (of: (sample: ProcessSample) => number | null, unit: number): Growth | null => {
      const points = kept.flatMap((sample) => {
        const value = of(sample);
        return value === null ? [] : [{ x: sample.atMs / 3_600_000, y: value / unit }];
      });
      return points.length === 0 ? null : growthOf(points);
    };
    found[name] = {
      residentMegabytes: growth((one) => one.residentBytes, 1e6) ?? NO_GROWTH,
      heapMegabytes: growth((one) => one.memory?.heapBytes ?? null, 1e6),
      externalMegabytes: growth((one) => one.memory?.externalBytes ?? null, 1e6),
      descriptors: growth((one) => one.descriptors, 1) ?? NO_GROWTH,
      loopDelayMs: all.length === 0 ? null : delaysOf(all),
    };
  }
  return found;
}

const NO_GROWTH: Growth = { first: 0, most: 0, last: 0, perHour: 0, perHourLate: 0 };

interface Point {
  readonly x: number;
  readonly y: number;
}

function growthOf(points: readonly Point[]): Growth {
  const values = points.map(({ y }) => y);
  return {
    first: rounded(values[0] ?? 0),
    most: rounded(Math.max(...values)),
    last: rounded(values.at(-1) ?? 0),
    perHour: rounded(slopeOf(points)),
    perHourLate: rounded(slopeOf(points.slice(points.length >> 1))),
  };
}

/** Of the line with the least squares. */
function slopeOf(points: readonly Point[]): number {
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length;
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread;
}

function delaysOf(notes: readonly MemoryNote[]): NonNullable<ProcessGrowth['loopDelayMs']> {
  const longest = notes.map(({ loopDelayMaxMs }) => loopDelayMaxMs).toSorted((one, other) => one - other);
  return {
    worst: rounded(longest.at(-1) ?? 0),
    worstP99: rounded(Math.max(...notes.map(({ loopDelayP99Ms }) => loopDelayP99Ms))),
    medianMax: rounded(longest[longest.length >> 1] ?? 0),
  };
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
