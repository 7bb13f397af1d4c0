// Where reports are served and asked for: settings in both of their forms, and the socket of an installation, also
// where its path is too long for one.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { ConfigFault, type Environment, readConfig } from '../../src/config.ts';
import { makeSocketDirectories, reportsAddresses } from '../../src/installation/reports-address.ts';
import { reportsAddressText } from '../../src/reports-settings.ts';

function refusal(environment: Environment): string {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigFault) return error.message;
  }
  return assert.fail('the settings were accepted');
}

describe('the settings of reports', () => {
  test('are a host and port, or a socket', () => {
    for (const [text, address] of [
      ['0.0.0.0:8082', { host: '0.0.0.0', port: 8082 }],
      ['[::1]:65535', { host: '::1', port: 65_535 }],
      ['jobs.internal:1', { host: 'jobs.internal', port: 1 }],
      ['unix:/run/tollgate/reports.sock', { socketPath: '/run/tollgate/reports.sock' }],
    ] as const) {
      const url = text.startsWith('unix:') ? text : `http://${text}`;
      const config = readConfig({ REPORTS_LISTEN: text, REPORTS_URL: url });
      assert.deepEqual([config.reportsListen, config.reportsUrl], [address, address]);
      assert.deepEqual([reportsAddressText(address, ''), reportsAddressText(address, 'http://')], [text, url]);
    }
    assert.deepEqual(readConfig({ REPORTS_LISTEN: '127.0.0.1:9000' }).reportsUrl, { host: '127.0.0.1', port: 9000 });
    assert.equal(readConfig({ REPORTS_URL: 'http://jobs:9000/' }).reportsListen, null);
  });

  test('that are neither are refused by name', () => {
    for (const text of [
      '8082',
      ':8082',
      'host',
      'host:0',
      'host:65536',
      'host:8082/path',
      'unix:relative',
      'unix:',
      'a b:1',
      '::1:80',
      'http://host:80',
    ]) {
      assert.equal(
        refusal({ REPORTS_LISTEN: text }),
        `REPORTS_LISTEN: must be HOST:PORT, such as 0.0.0.0:8082, or unix:/path, got ${JSON.stringify(text)}`,
      );
    }
    for (const text of [
      'host:8082',
      'https://host:8082',
      'http://host',
      'http://user@host:80',
      'http://host:80/x',
      'ftp://host:80',
    ]) {
      assert.equal(
        refusal({ REPORTS_URL: text }),
        `REPORTS_URL: must be http://HOST:PORT or unix:/path, got ${JSON.stringify(text)}`,
      );
    }
    assert.equal(
      refusal({ FACTS_RETENTION_DAYS: '6' }),
      'FACTS_RETENTION_DAYS: must be an integer from 7 to 36500, got "6"',
    );
    assert.equal(readConfig({ FACTS_RETENTION_DAYS: '400' }).factsRetentionDays, 400);
  });
});

describe('the socket of an installation', () => {
  const near = (dataDirectory: string, more: Environment = {}) =>
    reportsAddresses(readConfig({ DATA_DIR: dataDirectory, ...more }));
  const socketOf = ({ reportsListen }: ReturnType<typeof near>) =>
    'socketPath' in reportsListen ? reportsListen.socketPath : assert.fail('no socket');

  test('is in its data directory, for jobs and gateways alike, unless the settings say otherwise', () => {
    const own = { socketPath: '/srv/tollgate/reports.sock' };
    assert.deepEqual(near('/srv/tollgate'), { reportsListen: own, reportsUrl: own });
    const elsewhere = near('/srv/tollgate', { REPORTS_URL: 'http://jobs:8082' });
    assert.deepEqual(elsewhere, { reportsListen: own, reportsUrl: { host: 'jobs', port: 8082 } });
  });

  test('whose path would be too long is in a directory of ours alone, the same for all', () => {
    const long = `/srv/${'long-'.repeat(30)}`;
    const addresses = near(long);
    const socket = socketOf(addresses);
    assert.ok(
      Buffer.byteLength(socket) <= 103 &&
        socket.endsWith('/reports.sock') &&
        socket === socketOf(near(long)) &&
        socket !== socketOf(near(`${long}x`)),
    );
    const directory = dirname(socket);
    try {
      makeSocketDirectories(long, addresses);
      makeSocketDirectories(long, addresses);
      assert.equal(statSync(directory).mode & 0o777, 0o700);
      chmodSync(directory, 0o755);
      assert.throws(() => makeSocketDirectories(long, addresses), /exists and does not belong to this installation/);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test('is not prepared where it is not used', () => {
    const long = join(tmpdir(), 'x'.repeat(120));
    const addresses = near(long, { REPORTS_LISTEN: '127.0.0.1:9000' });
    makeSocketDirectories(long, addresses);
    const unused = socketOf(near(long));
    assert.throws(() => statSync(dirname(unused)), { code: 'ENOENT' });
    const short = mkdtempSync(join(tmpdir(), 'tollgate-address-'));
    mkdirSync(short, { recursive: true });
    makeSocketDirectories(short, near(short));
    rmSync(short, { recursive: true });
  });
});
