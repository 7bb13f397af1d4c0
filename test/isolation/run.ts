// The isolation run as a script: exchanges of several tenants with a fault at every step; nobody ever sees a foreign
// mark. README.md here explains it.
//
//   node test/isolation/run.ts --exchanges 1000000 --seed 1 --light [--from N] [--at-once 24]
//     [--gateways 2] [--look-ups-every 2000] [--progress 10] [--own-keys] [--guardrails] [--media]
//   node test/isolation/run.ts --leavers 10000 [--look-ups credential,lease,continuation,turn,route] [--at-once 6]
//
// `--leavers`: rounds of look-ups that wait, 60 clients each, until this many clients have left in each kind. The load
// runs beside them all the time. Leases end sooner: each of their rounds needs its own wallet, and there are 32.
//
// `--own-keys`: most exchanges belong to two dozen organizations that all have their own keys for the same providers.
// Every `--change-every` exchanges one of the keys is rotated or removed.
//
// `--guardrails`: most exchanges belong to a dozen organizations whose policies cloak, mask and block.
//
// `--media`: six organizations upload files and request each other's, as long as the exchanges go on.
//
// `--light`: few large bodies and half of the faults, for long runs. `--from`: the number of the first exchange, to
// repeat a part of a run.

import { parseArgs } from 'node:util';
import { Isolation } from './isolate.ts';
import { LOOK_UPS, type LookUp } from './look-ups.ts';

const { values } = parseArgs({
  options: {
    exchanges: { type: 'string', default: '10000' },
    leavers: { type: 'string' },
    'look-ups': { type: 'string', default: LOOK_UPS.join() },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '1' },
    'at-once': { type: 'string' },
    gateways: { type: 'string', default: '2' },
    'roll-every': { type: 'string', default: '50000' },
    'look-ups-every': { type: 'string', default: '2000' },
    progress: { type: 'string', default: '10' },
    light: { type: 'boolean', default: false },
    'own-keys': { type: 'boolean', default: false },
    guardrails: { type: 'boolean', default: false },
    media: { type: 'boolean', default: false },
    'change-every': { type: 'string', default: '200' },
  },
});

const lookUps = values['look-ups'].split(',').map((name): LookUp => {
  const lookUp = LOOK_UPS.find((one) => one === name);
  if (lookUp === undefined) throw new Error(`--look-ups: ${name} is none of ${LOOK_UPS.join(', ')}`);
  return lookUp;
});
const { leavers } = values;

/** The number of violations that were printed during the run. */
let printedViolations = 0;
const startedMs = performance.now();
const isolation = await Isolation.start(Number(values.gateways));
const servingMs = performance.now();
const watch = await isolation.run({
  seed: Number(values.seed),
  from: Number(values.from),
  exchanges: leavers === undefined ? Number(values.exchanges) : Number.POSITIVE_INFINITY,
  atOnce: Number(values['at-once'] ?? (leavers === undefined ? 24 : 6)),
  isLight: values.light,
  lookUpsEvery: Number(values['look-ups-every']),
  ...(leavers === undefined ? {} : { densely: { lookUps, leavers: Number(leavers) } }),
  ...(values['own-keys'] ? { ownKeys: { changeEvery: Number(values['change-every']) } } : {}),
  isGuarded: values.guardrails,
  ...(values.media ? { media: { steps: 0 } } : {}),
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
      for (; printedViolations < details.length; printedViolations += 1) console.log(`  ${details[printedViolations]}`);
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
