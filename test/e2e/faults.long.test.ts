// A full disk, a clock that jumps, rolling restarts, each for a while under load: all accounts
// agree afterwards. The minutes-long ones are faults-run.ts by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SmallDisk } from '../support/small-disk.ts';
import { type Fault, runFault } from './faults-run.ts';

const SEED = Number(process.env.TEST_SEED ?? 1);
const SECONDS = 8;
const RATE = 40;

function mayMount(): boolean {
  try {
    new SmallDisk(20).remove();
    return true;
  } catch {
    return false;
  }
}

const WITH_DISK = mayMount() ? {} : { skip: 'nobody but root on Linux can mount a small disk' };

for (const fault of ['disk-full', 'clock', 'roll'] satisfies Fault[]) {
  const options = fault === 'disk-full' ? WITH_DISK : {};
  test(`${fault} under load (TEST_SEED=${SEED})`, options, async () => {
    const report = await runFault({ fault, seconds: SECONDS, rate: RATE, seed: SEED });
    assert.deepEqual(report.problems, []);
    assert.equal(report.facts, report.generations);
    assert.equal(report.picoUsd.ledger, report.picoUsd.provider);
  });
}
