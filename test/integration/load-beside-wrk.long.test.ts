// `tollgate load` beside wrk on the same server, one after the other: a closed loop of the same width measures the same
// percentiles, because the server decides them. Skipped where wrk is not installed.

import assert from 'node:assert/strict';
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/gateway.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const hasWrk = spawnSync('wrk', ['-v']).error === undefined;
/** Of each reply: 100 to 400 ms, evenly, so that every percentile is known. */
const SERVER = `
import { createServer } from 'node:http';
let index = 0;
const server = createServer((request, reply) => {
  request.resume();
  setTimeout(() => reply.end('{}'), 100 + (index++ * 7) % 301);
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.once('disconnect', () => process.exit(0));
`;

test('a closed loop beside wrk', { skip: hasWrk ? false : 'wrk is not installed' }, async (context) => {
  const directory = temporaryDirectory(context);
  const file = join(directory, 'server.mjs');
  writeFileSync(file, SERVER);
  const server = fork(file);
  context.after(() => server.disconnect());
  const [port] = (await once(server, 'message')) as [number];
  const json = join(directory, 'load.json');
  const ours = await runCommand(
    ['load', '--target', `http://127.0.0.1:${port}`, '--model', 'm', '--key', 'k', '--concurrency', '20'].concat([
      '--seconds',
      '10',
      '--json',
      json,
    ]),
    process.env,
  );
  assert.equal(ours.exitCode, 0, ours.output);
  const wrk = spawnSync('wrk', ['-t1', '-c20', '-d10s', '--latency', `http://127.0.0.1:${port}/`], {
    encoding: 'utf8',
  });
  assert.equal(wrk.status, 0, wrk.stderr);
  const { request_latency_ms: latency, good_per_second: perSecond } = JSON.parse(readFileSync(json, 'utf8')) as {
    request_latency_ms: Readonly<Record<string, number>>;
    good_per_second: number;
  };
  const rate = Number(/Requests\/sec: +([\d.]+)/.exec(wrk.stdout)?.[1]);
  const compared: [string, number, number][] = [['replies a second', perSecond, rate]];
  for (const percent of ['50', '90', '99'])
    compared.push([
      `p${percent}`,
      latency[`p${percent}`] ?? Number.NaN,
      Number(new RegExp(`^ +${percent}% +([\\d.]+)ms`, 'm').exec(wrk.stdout)?.[1]),
    ]);
  for (const [name, mine, theirs] of compared) context.diagnostic(`${name}: ${mine.toFixed(2)}, wrk ${theirs}`);
  // The plan of the server spans 100 to 400 ms: a tenth is well inside of what would be another percentile.
  for (const [name, mine, theirs] of compared)
    assert.ok(Math.abs(mine - theirs) <= theirs / 10, `${name}: ${mine}, wrk ${theirs}\n${wrk.stdout}`);
});
