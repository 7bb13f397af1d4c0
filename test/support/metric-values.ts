// What an installation's admin address says of itself, sample by sample.

import { httpCall } from './http-call.ts';

/** One look at all of them. Of a sample without labels its first line counts; one that is not there is NaN. */
export async function readMetrics(adminUrl: string): Promise<(sample: string) => number> {
  const text = (await httpCall(`${adminUrl}/metrics`)).body.toString('utf8');
  return (sample) => {
    const isAt = (line: string) =>
      line.startsWith(`${sample} `) || (!sample.endsWith('}') && line.startsWith(`${sample}{`));
    return Number(text.split('\n').find(isAt)?.split(' ').at(-1) ?? Number.NaN);
  };
}
