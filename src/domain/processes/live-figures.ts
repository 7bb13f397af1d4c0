// Totals and percentiles over all processes, for people who watch live: for the last minute, and for each five seconds
// of the last five minutes.

import { MINUTE_MS } from '../../platform/durations.ts';
import { BEAT_INTERVAL_MS, type CountName, countKey, type GaugeName } from './process-sample.ts';

/** The period for which counts are shown, and which the lists of refusals and failed calls cover. */
export const SHOWN_MS = 300_000;
/** By this time after a beat, every process that is alive has written its counts. */
const WRITTEN_WITHIN_MS = 3_000;
/** A process is silent once three of its beats are missing. */
const SILENT_AFTER_MS = 3 * BEAT_INTERVAL_MS + WRITTEN_WITHIN_MS;

/** What all processes together counted at one beat, by key. */
export interface BeatCounts {
  readonly atMs: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** The state of a process at its last beat. */
export interface ProcessState {
  readonly machine: string;
  readonly kind: string;
  readonly pid: number;
  readonly epoch: number | null;
  readonly version: string;
  readonly startedAtMs: number;
  readonly lastBeatAtMs: number;
  readonly gauges: Readonly<Partial<Record<GaugeName, number>>>;
}

export interface Percentiles {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
}

export interface LiveFigures {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly tokensPerSecond: number;
  readonly byStatus: Readonly<Record<string, number>>;
  /** Requests that ended with 5xx or without a status. */
  readonly errors: number;
  readonly refusals: number;
  readonly failedCalls: number;
  readonly latency: Percentiles;
  readonly firstByte: Percentiles;
}

interface LivePoint extends LiveFigures {
  readonly atMs: number;
}

export interface LiveView {
  /** The time of the last beat that is included. */
  readonly atMs: number;
  readonly minute: LiveFigures;
  readonly points: readonly LivePoint[];
  readonly refusals: readonly { readonly code: string; readonly count: number }[];
  readonly failedCalls: readonly { readonly provider: string; readonly kind: string; readonly count: number }[];
}

export const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx', 'none', 'left'] as const;

export function isSilent({ lastBeatAtMs }: Pick<ProcessState, 'lastBeatAtMs'>, nowMs: number): boolean {
  return nowMs - lastBeatAtMs > SILENT_AFTER_MS;
}

/** `beats`: in any order, also older ones. A beat that not every process may have written yet is left out. */
export function liveView(beats: readonly BeatCounts[], nowMs: number): LiveView {
  const atMs = Math.floor((nowMs - WRITTEN_WITHIN_MS) / BEAT_INTERVAL_MS) * BEAT_INTERVAL_MS;
  const byTime = new Map(beats.map((beat) => [beat.atMs, beat.counts]));
  const times = Array.from(
    { length: SHOWN_MS / BEAT_INTERVAL_MS },
    (_, index) => atMs - SHOWN_MS + (index + 1) * BEAT_INTERVAL_MS,
  );
  const countsSince = (sinceMs: number) =>
    added(times.filter((time) => time > sinceMs).map((time) => byTime.get(time) ?? new Map()));
  const all = countsSince(atMs - SHOWN_MS);
  return {
    atMs,
    minute: figuresOf(countsSince(atMs - MINUTE_MS), MINUTE_MS),
    points: times.map((time) => ({ atMs: time, ...figuresOf(byTime.get(time) ?? new Map(), BEAT_INTERVAL_MS) })),
    refusals: listOf(all, 'refusals').map(({ labels: [code = ''], count }) => ({ code, count })),
    failedCalls: listOf(all, 'failed_calls').map(({ labels: [provider = '', kind = ''], count }) => ({
      provider,
      kind,
      count,
    })),
  };
}

function added(all: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const counts of all) for (const [key, count] of counts) sums.set(key, (sums.get(key) ?? 0) + count);
  return sums;
}

function figuresOf(counts: ReadonlyMap<string, number>, lengthMs: number): LiveFigures {
  const byStatus = Object.fromEntries(
    STATUS_CLASSES.map((status) => [status, counts.get(countKey('requests', status)) ?? 0]),
  );
  const requests = sumOf(counts, 'requests');
  return {
    requests,
    requestsPerSecond: requests / (lengthMs / 1_000),
    tokensPerSecond: sumOf(counts, 'tokens') / (lengthMs / 1_000),
    byStatus,
    errors: (byStatus['5xx'] ?? 0) + (byStatus['none'] ?? 0),
    refusals: sumOf(counts, 'refusals'),
    failedCalls: sumOf(counts, 'failed_calls'),
    latency: percentilesOf(counts, 'latency'),
    firstByte: percentilesOf(counts, 'first_byte'),
  };
}

function sumOf(counts: ReadonlyMap<string, number>, name: CountName): number {
  return listOf(counts, name).reduce((sum, { count }) => sum + count, 0);
}

/** The most frequent first. */
function listOf(counts: ReadonlyMap<string, number>, name: CountName) {
  return [...counts]
    .map(([key, count]) => ({ parts: JSON.parse(key) as readonly string[], count }))
    .filter(({ parts: [first] }) => first === name)
    .map(({ parts: [, ...labels], count }) => ({ labels, count }))
    .toSorted((one, other) => other.count - one.count);
}

function percentilesOf(counts: ReadonlyMap<string, number>, name: CountName): Percentiles {
  const buckets = listOf(counts, name)
    .map(({ labels: [lower, upper], count }) => ({
      lowerMs: Number(lower) * 1_000,
      upperMs: Number(upper) * 1_000,
      count,
    }))
    .toSorted((one, other) => one.lowerMs - other.lowerMs);
  return { p50Ms: quantile(buckets, 0.5), p95Ms: quantile(buckets, 0.95), p99Ms: quantile(buckets, 0.99) };
}

interface Bucket {
  readonly lowerMs: number;
  readonly upperMs: number;
  readonly count: number;
}

/**
 * A quantile as Prometheus estimates it: values are assumed to be evenly spread within a bucket. In the last bucket,
 * which has no upper bound, the result is the lower bound. null: nothing was counted.
 */
function quantile(buckets: readonly Bucket[], share: number): number | null {
  const wanted = share * buckets.reduce((sum, { count }) => sum + count, 0);
  let below = 0;
  for (const { lowerMs, upperMs, count } of buckets) {
    if (below + count >= wanted)
      return Number.isFinite(upperMs) ? lowerMs + (upperMs - lowerMs) * ((wanted - below) / count) : lowerMs;
    below += count;
  }
  return null;
}
