// Backups keep jobs from removing what it has shipped, each for itself, and for no longer than its process lives.

import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { holdSpool, isHoldFile, isSpoolHeld } from '../../src/storage/spool/spool-hold.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('two backups hold a spool until both have released it', (context) => {
  const directory = temporaryDirectory(context);
  assert.equal(isSpoolHeld(directory), false);
  const one = holdSpool(directory);
  const other = holdSpool(directory);
  assert.equal(isSpoolHeld(directory), true);
  assert.ok(readdirSync(directory).every(isHoldFile), 'a copy of the spool leaves them out');
  one.release();
  assert.equal(isSpoolHeld(directory), true);
  other.release();
  assert.equal(isSpoolHeld(directory), false);
});

test('a backup that was killed holds nothing, and the next one clears up behind it', (context) => {
  const directory = temporaryDirectory(context);
  const dead = { pid: 2 ** 22 + 1, processStart: '1', bootId: null };
  writeFileSync(join(directory, 'held-for-backup-dead.json'), JSON.stringify(dead));
  writeFileSync(join(directory, 'held-for-backup-cut.json'), '{"pi');
  assert.equal(isSpoolHeld(directory), false);
  const hold = holdSpool(directory);
  assert.equal(readdirSync(directory).length, 1);
  hold.release();
  assert.deepEqual(readdirSync(directory), []);
});
