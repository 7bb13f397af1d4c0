// Addresses that customers name: none of them leads into the operator's own network, by the system's own counters.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../../src/domain/models/provider.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { resolveByDns } from '../../src/platform/egress/resolve-name.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { verifyProvider } from '../../src/upstream/verify-provider.ts';
import { startNameServer } from '../support/alternating-name-server.ts';

const ATTACKS = fileURLToPath(new URL('../support/fake-egress.ts', import.meta.url));
const ALONE = ['--net', '--', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
const CAN_BE_ALONE = spawnSync('unshare', [...ALONE, 'true']).status === 0;

interface Attacks {
  readonly tried: number;
  readonly reached: readonly string[];
  /** Connections that the system has tried to open. */
  readonly opened: number;
  /** That a listener on every address of the machine has accepted. */
  readonly seen: number;
  readonly openedAllowed: number;
  readonly acceptedAllowed: number;
}

test('every spelling of a private address and names that alternate: the system counts no connection', {
  skip: CAN_BE_ALONE ? false : 'this machine lets nobody have a network of their own (unshare --net)',
}, () => {
  const run = spawnSync('unshare', [...ALONE, process.execPath, ATTACKS], { encoding: 'utf8', timeout: 120_000 });
  assert.equal(run.status, 0, run.stderr);
  const found = JSON.parse(run.stdout) as Attacks;
  assert.ok(found.tried >= 60, run.stdout);
  assert.deepEqual(found.reached, []);
  assert.deepEqual([found.opened, found.seen], [0, 0], run.stdout);
  assert.ok(found.openedAllowed >= 1 && found.acceptedAllowed >= 1, run.stdout);
});

describe('a connection that the operator has opened', () => {
  test('follows no redirect, and checks who it is connected to', async () => {
    let [redirected, asked] = [0, 0];
    const inner = createServer((_, response) => {
      redirected += 1;
      response.end('{}');
    });
    const innerPort = await listenOn(inner);
    const outer = createServer((_, response) => {
      asked += 1;
      response.writeHead(302, { location: `http://127.0.0.1:${innerPort}/` }).end();
    });
    const port = await listenOn(outer);
    const names = await startNameServer({ 'llm.test': [['127.0.0.1']] });
    const egress = new EgressGuard({ anyPort: false, allowPrivate: false, allowed: [{ network: '127.0.0.1', port }] });
    const resolve = resolveByDns([names.address]);
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock, { egress, resolveCustomerName: resolve });
    const provider: Provider = {
      id: 'custom',
      baseUrl: `http://llm.test:${port}`,
      apiKey: 'sk-own',
      auth: 'bearer',
      onDisconnect: 'cancel',
      own: { keyId: 'one', isGuarded: true },
    };
    try {
      const found = await verifyProvider(provider, calls);
      assert.deepEqual([found.result, found.status, asked, redirected], ['unreachable', 302, 1, 0]);
    } finally {
      await calls.close();
      await names.close();
      for (const server of [inner, outer]) server.close();
    }
  });

  test('customers whose names hang hold up no name of another', async () => {
    const host = createServer((_, response) => void response.end('{"data":[]}'));
    const port = await listenOn(host);
    const egress = new EgressGuard({ anyPort: false, allowPrivate: false, allowed: [{ network: '127.0.0.1', port }] });
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock, {
      egress,
      resolveCustomerName: (name, _, callback) => {
        if (name === 'good.test') setImmediate(() => callback(null, [{ address: '127.0.0.1', family: 4 }]));
      },
    });
    const verify = (name: string) => {
      const own = { keyId: name, isGuarded: true };
      const provider = { id: 'custom', baseUrl: `http://${name}:${port}`, apiKey: 'k', auth: 'bearer', own } as const;
      return verifyProvider({ ...provider, onDisconnect: 'cancel' }, calls);
    };
    const hanging = Array.from({ length: 200 }, (_, at) => verify(`hanging-${at}.test`));
    try {
      assert.equal((await verify('good.test')).result, 'good');
    } finally {
      await calls.close();
      host.close();
      await Promise.all(hanging);
    }
  });

  function listenOn(server: ReturnType<typeof createServer>): Promise<number> {
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
  }
});

describe('the rules', () => {
  const guard = new EgressGuard({
    anyPort: false,
    allowPrivate: false,
    allowed: [
      { network: '10.2.0.0/16', port: 8000 },
      { network: 'fd12::/16', port: 8000 },
      { network: '169.254.0.0/16', port: 80 },
      { network: null, port: 8443 },
    ],
  });
  const rows: readonly [address: string, port: number, allowed: boolean][] = [
    ['93.184.216.34', 443, true],
    ['93.184.216.34', 80, false],
    ['93.184.216.34', 8443, true],
    ['10.2.3.4', 8000, true],
    ['10.2.3.4', 443, false],
    ['10.2.3.4', 8443, false],
    ['10.3.3.4', 8000, false],
    ['fd12::1', 8000, true],
    ['fd13::1', 8000, false],
    ['127.0.0.1', 443, false],
    // Metadata services never, whatever is opened.
    ['169.254.169.254', 80, false],
    ['169.254.1.1', 80, true],
    ['168.63.129.16', 443, false],
    ['2606:4700:4700::1111', 443, true],
    ['', 443, false],
    ['example.test', 443, false],
  ];
  for (const [address, port, allowed] of rows)
    test(`${address || 'nothing'} port ${port}`, () => assert.equal(guard.allows(address, port), allowed));

  test('with private addresses allowed, metadata services are not', () => {
    const open = new EgressGuard({ anyPort: true, allowPrivate: true, allowed: [] });
    assert.deepEqual(
      ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254'].map((address) =>
        open.allows(address, 80),
      ),
      [true, true, false, false, false],
    );
  });

  test('the prefix of the site’s own translator is as private as what is behind it', () => {
    const translating = new EgressGuard({ anyPort: true, allowPrivate: false, allowed: [] });
    assert.equal(translating.allows('2001:4860:64::a00:1', 443), true);
    translating.learnTranslation(['2001:4860:64::c000:aa']);
    assert.equal(translating.allows('2001:4860:64::a00:1', 443), false);
  });
});
