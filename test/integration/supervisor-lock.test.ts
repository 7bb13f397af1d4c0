// The installation lock and the port claim, with real processes: one holder, takeover after a kill, no two on one port.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { findInstallationHolder, takeInstallationLock } from '../../src/installation/installation-lock.ts';
import { claimNextPort, claimPort } from '../../src/installation/ports.ts';
import { readProcessIdentity } from '../../src/storage/spool/process-identity.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const LOCK_MODULE = new URL('../../src/installation/installation-lock.ts', import.meta.url).href;

/** A process that takes the lock, says so, and stays. */
const TAKER = `
  const { takeInstallationLock } = await import('${LOCK_MODULE}');
  const taken = takeInstallationLock(process.argv[1]);
  console.log(taken.ok ? 'taken' : 'refused ' + taken.holder.pid);
  setInterval(() => undefined, 1000);
`;

async function spawnTaker(directory: string) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', TAKER, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const kill = async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return { pid: child.pid ?? 0, said: chunk.toString().trim(), kill };
}

describe('installation lock', () => {
  test('taken, refused to a second by the pid of the first, free again after release', (context) => {
    const directory = temporaryDirectory(context);
    const first = takeInstallationLock(directory);
    assert.ok(first.ok);
    const second = takeInstallationLock(directory);
    assert.ok(!second.ok);
    assert.equal(second.holder.pid, process.pid);
    assert.equal(findInstallationHolder(directory)?.pid, process.pid);
    first.lock.release();
    assert.equal(findInstallationHolder(directory), null);
    const third = takeInstallationLock(directory);
    assert.ok(third.ok && !third.tookOver);
    third.lock.release();
    assert.deepEqual(readdirSync(directory), []);
  });

  test('a holder that was killed is taken over from', async (context) => {
    const directory = temporaryDirectory(context);
    const taker = await spawnTaker(directory);
    assert.equal(taker.said, 'taken');
    assert.equal(takeInstallationLock(directory).ok, false);
    await taker.kill();
    const taken = takeInstallationLock(directory);
    assert.ok(taken.ok && taken.tookOver);
    taken.lock.release();
  });

  test('a pid that is used again is not the holder', (context) => {
    const directory = temporaryDirectory(context);
    writeFileSync(join(directory, 'supervisor.lock'), JSON.stringify({ ...readProcessIdentity(), processStart: '1' }));
    assert.equal(takeInstallationLock(directory).ok, process.platform === 'linux');
  });

  test('a lock that cannot be read is stale', (context) => {
    const directory = temporaryDirectory(context);
    for (const content of ['', 'x', '{}', '{"pid":0}']) {
      writeFileSync(join(directory, 'supervisor.lock'), content);
      const taken = takeInstallationLock(directory);
      assert.ok(taken.ok);
      taken.lock.release();
    }
  });

  test('of many that find a stale lock at once, one gets it', async (context) => {
    const directory = temporaryDirectory(context);
    for (let round = 0; round < 3; round += 1) {
      writeFileSync(
        join(directory, 'supervisor.lock'),
        JSON.stringify({ pid: 2 ** 22 - 3, processStart: '1', bootId: 'x' }),
      );
      const takers = await Promise.all(Array.from({ length: 6 }, () => spawnTaker(directory)));
      const winners = takers.filter((taker) => taker.said === 'taken');
      assert.equal(winners.length, 1, takers.map((taker) => taker.said).join(', '));
      assert.equal(
        (JSON.parse(readFileSync(join(directory, 'supervisor.lock'), 'utf8')) as { pid: number }).pid,
        winners[0]?.pid,
      );
      await Promise.all(takers.map((taker) => taker.kill()));
    }
  });
});

describe('port claim', () => {
  test('a port in use is not claimed, also when it is shared with SO_REUSEPORT', async () => {
    for (const reusePort of [false, true]) {
      const server = createServer().listen({ port: 0, host: '127.0.0.1', reusePort });
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      assert.equal(await claimPort('127.0.0.1', port), null);
      const next = await claimNextPort('127.0.0.1', port);
      assert.ok(next !== null && next.port > port);
      next.release();
      server.close();
      await once(server, 'close');
      const claim = await claimPort('127.0.0.1', port);
      assert.equal(claim?.port, port);
      claim?.release();
    }
  });

  test('a claimed port is refused to another claim, though nobody listens on it yet', {
    skip: process.platform !== 'linux' && 'claims are abstract sockets, which only Linux has',
  }, async () => {
    const first = await claimNextPort('127.0.0.1', 20_000 + (process.pid % 20_000));
    assert.ok(first !== null);
    assert.equal(await claimPort('127.0.0.1', first.port), null);
    first.release();
    const again = await claimPort('127.0.0.1', first.port);
    assert.ok(again !== null);
    again.release();
  });
});
