// A process in a network namespace of its own that is asked to call private addresses: every spelling of them, and
// names whose addresses alternate. It prints the result of each attempt, and how many connections the system counted.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { sendWebhook } from '../../jobs/webhooks/send-webhook.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { resolveByDns } from '../../src/platform/egress/resolve-name.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { verifyProvider } from '../../src/upstream/verify-provider.ts';
import { startNameServer } from './alternating-name-server.ts';

const LITERALS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '0.0.0.0',
  '127.255.255.254',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[fe80::1]',
  '[fd00::1]',
  '10.0.0.1',
  '169.254.169.254',
  '168.63.129.16',
  '100.100.100.200',
  '[fd00:ec2::254]',
];
const [PUBLIC, LOOPBACK] = ['93.184.216.34', '127.0.0.1'];
const NAMES = {
  'private.test': [[LOOPBACK]],
  'private6.test': [['::1']],
  'mapped.test': [['::ffff:127.0.0.1']],
  'translated.test': [['64:ff9b::7f00:1']],
  'site-translated.test': [['2001:4860:64::7f00:1']],
  'mixed.test': [[PUBLIC, LOOPBACK]],
  'mixed6.test': [[PUBLIC, '::1']],
  'alternating.test': [[PUBLIC], [LOOPBACK], [PUBLIC], [LOOPBACK]],
  'metadata.test': [['169.254.169.254']],
};

let accepted = 0;
const listener = createServer((socket) => {
  accepted += 1;
  socket.destroy();
});
await new Promise<void>((resolve) => listener.listen({ port: 0, host: '::' }, resolve));
const address = listener.address();
const port = typeof address === 'object' && address !== null ? address.port : 0;
const names = await startNameServer(NAMES);

const guardOf = (allowed: ConstructorParameters<typeof EgressGuard>[0]['allowed']): EgressGuard => {
  const guard = new EgressGuard({ anyPort: false, allowPrivate: false, allowed });
  guard.learnTranslation(['2001:4860:64::c000:aa']);
  return guard;
};
const guard = guardOf([{ network: null, port }]);
const resolve = resolveByDns([names.address]);
const calls = new ProviderCalls(new MetricsRegistry(), systemClock, { egress: guard, resolveCustomerName: resolve });
const activeOpens = (): number => {
  const [head = '', values = ''] = readFileSync('/proc/self/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Tcp:'));
  return Number(values.split(' ')[head.split(' ').indexOf('ActiveOpens')]);
};

const openedBefore = activeOpens();
const reached: string[] = [];
const tried: string[] = [];
for (const host of [...LITERALS, ...Object.keys(NAMES), 'alternating.test', 'localhost', 'nobody.test']) {
  for (const scheme of ['https', 'http']) {
    const url = `${scheme}://${host}:${port}`;
    tried.push(url);
    const provider: Provider = {
      id: 'custom',
      baseUrl: url,
      apiKey: 'sk-own',
      auth: 'bearer',
      onDisconnect: 'cancel',
      timeouts: { connectMs: 500 },
      own: { keyId: url, isGuarded: true },
    };
    const clock = setInterval(() => calls.trim(), 50);
    const { result, reason } = await verifyProvider(provider, calls);
    clearInterval(clock);
    if (result !== 'unreachable') reached.push(`${url}: ${reason}`);
    const targets = { allowHttp: true, guard };
    const failure = await sendWebhook({ url, headers: {}, body: '{}' }, targets);
    if (failure === null || failure.startsWith('answered')) reached.push(`webhook ${url}: ${failure}`);
  }
}
const opened = activeOpens() - openedBefore;
const seen = accepted;

// An address that the operator has allowed is reached; otherwise the checks above would prove nothing.
const openCalls = new ProviderCalls(new MetricsRegistry(), systemClock, {
  egress: guardOf([{ network: '127.0.0.0/8', port }]),
  resolveCustomerName: resolve,
});
const open: Provider = {
  id: 'custom',
  baseUrl: `http://private.test:${port}`,
  apiKey: 'sk-own',
  auth: 'bearer',
  onDisconnect: 'cancel',
  own: { keyId: 'open', isGuarded: true },
};
await verifyProvider(open, openCalls);
const openedAllowed = activeOpens() - openedBefore - opened;
process.stdout.write(
  `${JSON.stringify({ tried: tried.length, reached, opened, seen, openedAllowed, acceptedAllowed: accepted - seen })}\n`,
);
process.exit(0);
