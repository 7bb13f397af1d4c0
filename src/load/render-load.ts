// Renders the measurements of a load: as text for people, as JSON for programs, and as the live line of progress.

import type { Histogram } from './histogram.ts';
import type { Measurements, Series } from './measurements.ts';
import type { LoadResult } from './run-load.ts';

const PERCENTILES = [50, 90, 99, 99.9] as const;

export function renderLiveLine(measurements: Measurements, elapsedMs: number): string {
  const { requests, streams, open, openStreams, good, failed } = measurements;
  const { latency } = requests.latency.count > 0 ? requests : streams;
  const perSecond = good / Math.max(elapsedMs / 1_000, 0.001);
  return [
    `${Math.round(elapsedMs / 1_000)} s`,
    `${perSecond.toFixed(1)} replies/s`,
    `${open} open${openStreams > 0 ? `, ${openStreams} of them streams` : ''}`,
    `p50 ${inMilliseconds(latency.percentileUs(50))}`,
    `p99 ${inMilliseconds(latency.percentileUs(99))}`,
    `${failed} errors`,
  ].join('  ');
}

export function renderLoadText(result: LoadResult): string {
  const { measurements, elapsedMs, goodInTime, abandoned, oldestAbandonedMs } = result;
  const { requests, streams, ownDelay, errors, begun, good, failed, events } = measurements;
  const seconds = elapsedMs / 1_000;
  const perSecond = (goodInTime / seconds).toFixed(1);
  const rows = [
    ...seriesRows('requests', requests),
    ...seriesRows('streams', streams),
    ...(ownDelay.count > 0 ? [row('sent late by (this command itself)', ownDelay)] : []),
  ];
  const lines = [
    `${begun} requests in ${seconds.toFixed(1)} s: ${good} good replies (${perSecond} a second in it), ` +
      `${failed} errors${events > 0 ? `, ${events} events` : ''}`,
    '',
    ['ms'.padEnd(36), ...['count', ...PERCENTILES.map((percent) => `p${percent}`), 'max'].map(column)].join(''),
    ...rows,
  ];
  if (failed > 0) lines.push('', 'errors:', ...sortedErrors(errors).map(([kind, count]) => `  ${count}  ${kind}`));
  if (abandoned > 0)
    lines.push(
      '',
      `${abandoned} requests had no whole reply when the load was stopped, the oldest since ` +
        `${(oldestAbandonedMs / 1_000).toFixed(1)} s; they are in no figure above`,
    );
  return lines.join('\n');
}

/** Durations are milliseconds. */
export function loadFigures(result: LoadResult): Readonly<Record<string, unknown>> {
  const { measurements, startedAtMs, elapsedMs, goodInTime, abandoned, oldestAbandonedMs } = result;
  return {
    started_at: new Date(startedAtMs).toISOString(),
    elapsed_seconds: elapsedMs / 1_000,
    begun: measurements.begun,
    good: measurements.good,
    good_in_time: goodInTime,
    good_per_second: goodInTime / (elapsedMs / 1_000),
    events: measurements.events,
    ...Object.fromEntries(
      Object.entries(histogramsOf(measurements)).map(([name, histogram]) => [`${name}_ms`, figuresOf(histogram)]),
    ),
    errors: Object.fromEntries(sortedErrors(measurements.errors)),
    abandoned,
    oldest_abandoned_ms: oldestAbandonedMs,
  };
}

/** The histograms that have a value, by their names in figures and logs. */
export function histogramsOf({ requests, streams, ownDelay }: Measurements): Readonly<Record<string, Histogram>> {
  const all: [string, Histogram][] = [
    ['request_latency', requests.latency],
    ['request_first_byte', requests.firstByte],
    ['stream_latency', streams.latency],
    ['stream_first_byte', streams.firstByte],
    ['stream_between_events', streams.betweenEvents],
    ['own_delay', ownDelay],
  ];
  return Object.fromEntries(all.filter(([, histogram]) => histogram.count > 0));
}

function seriesRows(name: string, { latency, firstByte, betweenEvents }: Series): string[] {
  const rows: [string, Histogram][] = [
    [`${name}: latency`, latency],
    [`${name}: first byte`, firstByte],
    [`${name}: between events`, betweenEvents],
  ];
  return rows.filter(([, histogram]) => histogram.count > 0).map(([label, histogram]) => row(label, histogram));
}

function row(label: string, histogram: Histogram): string {
  const figures = [...PERCENTILES.map((percent) => histogram.percentileUs(percent)), histogram.maxUs];
  return [
    label.padEnd(36),
    column(String(histogram.count)),
    ...figures.map((us) => column((us / 1_000).toFixed(2))),
  ].join('');
}

function column(text: string): string {
  return text.padStart(11);
}

function figuresOf(histogram: Histogram): Readonly<Record<string, number>> {
  return {
    count: histogram.count,
    mean: histogram.meanUs / 1_000,
    ...Object.fromEntries(PERCENTILES.map((percent) => [`p${percent}`, histogram.percentileUs(percent) / 1_000])),
    max: histogram.maxUs / 1_000,
  };
}

function sortedErrors(errors: ReadonlyMap<string, number>): [string, number][] {
  return [...errors].sort(([, one], [, other]) => other - one);
}

function inMilliseconds(us: number): string {
  return `${(us / 1_000).toFixed(1)} ms`;
}
