// The isolation run as a script: exchanges of several tenants with a fault at every step; nobody ever sees a foreign
// mark. README.md here explains it.
//
//   node test/isolation/run.ts --exchanges 1000000 --seed 1 --light [--from N] [--at-once 24]
//     [--gateways 2] [--look-ups-every 2000] [--progress 10]
//
// `--light`: few large bodies and half of the faults, for long runs. `--from`: the number of the first exchange, where
// a run is repeated in part.

import { parseArgs } from 'node:util';
import { Isolation } from './isolate.ts';

const { values } = parseArgs({
  options: {
    exchanges: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '24' },
    gateways: { type: 'string', default: '2' },
    'roll-every': { type: 'string', default: '50000' },
    'look-ups-every': { type: 'string', default: '2000' },
    progress: { type: 'string', default: '10' },
    light: { type: 'boolean', default: false },
  },
});

/** Violations that were printed while the run went on. */
let told = 0;
const startedMs = performance.now();
const isolation = await Isolation.start(Number(values.gateways));
const servingMs = performance.now();
const watch = await isolation.run({
  seed: Number(values.seed),
  from: Number(values.from),
  exchanges: Number(values.exchanges),
  atOnce: Number(values['at-once']),
  isLight: values.light,
  lookUpsEvery: Number(values['look-ups-every']),
  rollEvery: Number(values['roll-every']),
  onProgress: {
    everyMs: Number(values.progress) * 1_000,
    tell: ({ exchanges, checkedBytes, violationCount, details }) => {
      const seconds = (performance.now() - servingMs) / 1_000;
      const megabytes = Math.round(process.memoryUsage.rss() / 1e6);
      console.log(
        `${seconds.toFixed(0)} s: ${exchanges} exchanges, ${(checkedBytes / 1e9).toFixed(2)} GB ` +
          `checked, ${violationCount} violations, ${megabytes} MB`,
      );
      for (; told < details.length; told += 1) console.log(`  ${details[told]}`);
    },
  },
});
const seconds = (performance.now() - servingMs) / 1_000;
const { user, system } = process.cpuUsage();
await isolation.stop();
console.log(
  `seed ${values.seed}: ${seconds.toFixed(0)} s ` +
    `after ${((servingMs - startedMs) / 1_000).toFixed(0)} s of start; this process ` +
    `computed ${((user + system) / 1e6).toFixed(0)} s`,
);
console.log(watch.report());
process.exit(watch.violationCount === 0 ? 0 : 1);
