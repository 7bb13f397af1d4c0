// Writes histograms as a histogram log, version 1.3: the text that HdrHistogram's tools and plotters read, one tagged
// line for each measurement of the run.

import type { Histogram } from './histogram.ts';

/** Values are microseconds; the log's own column of the maximum is in milliseconds. */
export function renderHistogramLog(
  startedAtMs: number,
  elapsedMs: number,
  histograms: Readonly<Record<string, Histogram>>,
): string {
  const startedAt = (startedAtMs / 1_000).toFixed(3);
  const lines = Object.entries(histograms).map(([tag, histogram]) =>
    [
      `Tag=${tag}`,
      '0.000',
      (elapsedMs / 1_000).toFixed(3),
      (histogram.maxUs / 1_000).toFixed(3),
      histogram.encode().toString('base64'),
    ].join(','),
  );
  return [
    '#[Values are microseconds]',
    '#[Histogram log format version 1.3]',
    `#[StartTime: ${startedAt} (seconds since epoch), ${new Date(startedAtMs).toISOString()}]`,
    `#[BaseTime: ${startedAt} (seconds since epoch)]`,
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ...lines,
    '',
  ].join('\n');
}
