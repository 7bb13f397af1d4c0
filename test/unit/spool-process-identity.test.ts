// Whether a spool's owner lives is read from the system: with real processes, a killed one and a reused pid among them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { isAlive, readProcessIdentity } from '../../src/storage/spool/process-identity.ts';

describe('process identity', () => {
  test('this process is alive', () => {
    assert.equal(isAlive(readProcessIdentity()), true);
  });

  test('a stopped process is alive, a killed one is not', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    const owner = readProcessIdentity(child.pid);
    assert.equal(isAlive(owner), true);
    child.kill('SIGSTOP');
    assert.equal(isAlive(owner), true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(isAlive(owner), false);
  });

  test('a process that has the pid but began at another time is someone else', {
    skip: process.platform !== 'linux' && 'only Linux tells when a process began',
  }, () => {
    assert.equal(isAlive({ ...readProcessIdentity(), processStart: '1' }), false);
  });

  test('nothing lives on from before the last boot', {
    skip: process.platform !== 'linux' && 'only Linux tells when a process began',
  }, () => {
    assert.equal(isAlive({ ...readProcessIdentity(), bootId: 'another-boot' }), false);
  });

  test('where the system says nothing about start times, the pid alone decides', () => {
    assert.equal(isAlive({ pid: process.pid, processStart: null, bootId: null }), true);
    assert.equal(isAlive({ pid: 2 ** 22 - 3, processStart: null, bootId: null }), false);
  });
});
