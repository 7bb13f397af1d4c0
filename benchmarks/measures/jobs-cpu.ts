// P14: what the jobs process spends on shipping one record of the spool into Postgres and ClickHouse, with the embedded
// ClickHouse in it and without Postgres, until all that the load made is shipped, at a low and at a high load: what it
// does in any case, whether much or little has come, is shared by few records or by many. Then it is stopped for the
// rest of the run.

import { setTimeout as sleep } from 'node:timers/promises';
import { cpuNs } from '../harness/cpu-time.ts';
import { type Measure, type Row, targetOf } from './measure.ts';

const RATES_PER_SECOND = [1_000, 4_000] as const;
/** `admitted` and one terminal record. */
const RECORDS_PER_REQUEST = 2;
/** The jobs process has caught up when a pause costs it no more than this share of a core. */
const IDLE_SHARE = 0.05;
const PAUSE_MS = 1000;
const PAUSES_MAX = 60;
/** As other measures pass their first seconds: this process has just started, and V8 compiles what it needs. */
const PASSED_BEFORE_MS = 20_000;
/** Merges of the facts come every few seconds: of a short load the figure says whether one fell into it. */
const LOAD_MS = 20_000;

export const jobsCpu: Measure = {
  ids: ['P14'],
  async run({ load, product }) {
    if (product === null) return [];
    const drive = (requestsPerSecond: number, durationMs: number) =>
      load.run({
        kind: 'rate',
        target: targetOf(product, 'json/1024', '1k', 1024),
        requestsPerSecond,
        // Warm-up requests are shipped too, so within the measured load there are none.
        warmupMs: 0,
        durationMs,
      });
    await drive(RATES_PER_SECOND[0], PASSED_BEFORE_MS);
    const rows: Row[] = [];
    for (const rate of RATES_PER_SECOND) {
      await untilIdle(product.jobsPid);
      const before = cpuNs(product.jobsPid);
      const result = await drive(rate, LOAD_MS);
      const idleNs = await untilIdle(product.jobsPid);
      const us = (cpuNs(product.jobsPid) - before - idleNs) / (result.requests * RECORDS_PER_REQUEST) / 1000;
      rows.push({
        id: 'P14',
        what: `jobs: CPU per shipped record, ${rate} requests per second`,
        unit: 'µs',
        values: { tollgate: us },
        figure: us,
        goal: null,
        goalIs: 'at most',
      });
    }
    return rows;
  },
};

/** Waits until the process has nothing left to do; returns the CPU of the last, idle pause. */
async function untilIdle(pid: number): Promise<number> {
  for (let pause = 0; pause < PAUSES_MAX; pause++) {
    const before = cpuNs(pid);
    await sleep(PAUSE_MS);
    const used = cpuNs(pid) - before;
    if (used < IDLE_SHARE * PAUSE_MS * 1e6) return used;
  }
  throw new Error('the jobs process does not catch up');
}
