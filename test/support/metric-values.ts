// Reads the metrics of an installation's admin address, sample by sample.

import { httpCall } from './http-call.ts';

/**
 * Reads all metrics once, and returns a function that finds a sample. Without labels it finds the first line of the
 * metric; a missing sample is NaN.
 */
export async function readMetrics(adminUrl: string): Promise<(sample: string) => number> {
  const text = (await httpCall(`${adminUrl}/metrics`)).body.toString('utf8');
  return (sample) => {
    const isAt = (line: string) =>
      line.startsWith(`${sample} `) || (!sample.endsWith('}') && line.startsWith(`${sample}{`));
    return Number(text.split('\n').find(isAt)?.split(' ').at(-1) ?? Number.NaN);
  };
}
