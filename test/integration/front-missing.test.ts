// Where uWebSockets.js has no binary: who asks for it is told what to do, in one sentence and without a stack trace,
// and who does not is served by node:http.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { findFreePort } from '../support/free-port.ts';
import { NOWHERE, runCommandApart, settingsOf } from '../support/gateway.ts';

/** The processes' Node finds no uWebSockets.js. */
const HIDE_UWS = `import { registerHooks } from 'node:module';
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'uWebSockets.js') throw new Error('hidden');
    return next(specifier, context);
  },
});`;

describe('without uWebSockets.js', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-test-'));
  after(() => rmSync(directory, { recursive: true }));

  async function run(command: string, httpFront: string) {
    return runCommandApart(
      [command],
      settingsOf({
        dataDir: directory,
        port: await findFreePort(),
        adminPort: await findFreePort(),
        databaseUrl: NOWHERE.replace('http', 'postgres'),
        env: {
          CLICKHOUSE_URL: NOWHERE,
          HTTP_FRONT: httpFront,
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(HIDE_UWS)}`,
        },
      }),
    );
  }

  test('a gateway that is to have it says so and ends', async () => {
    const { exitCode, output } = await run('gateway', 'uws');
    assert.equal(exitCode, 1, output);
    assert.match(output, /cannot start: HTTP_FRONT is uws, and uWebSockets\.js has no binary for \w+ \w+ and Node v/);
    assert.match(output, /: remove HTTP_FRONT, or set it to node \(docs\/install\.md\)/);
    assert.doesNotMatch(output, /\bat .*:\d+:\d+|"err"/);
  });

  test('doctor says the same, and which front serves where any may', async () => {
    assert.match((await run('doctor', 'uws')).output, /WRONG +HTTP_FRONT is uws, and uWebSockets\.js has no binary/);
    assert.match((await run('doctor', 'auto')).output, /note +uWebSockets\.js has no binary .*: node:http serves/);
  });
});
