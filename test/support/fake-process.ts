// A stand-in for any process of an installation: it serves nothing, lives by the real lifecycle, and writes into a
// shared file what happens to it. `node fake-process.ts ROLE`; FAKE_EVENTS names the file, FAKE_DRAIN_MS how long a
// drain takes, FAKE_BROKEN a role that dies at once while the file of that name exists, and one that lacks something
// while FAKE_BROKEN.lacks.ROLE does; it is not ready while FAKE_BROKEN.slow.ROLE exists, and a gateway has
// FAKE_INFLIGHT open requests.

import { appendFileSync, existsSync } from 'node:fs';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { ProcessLifecycle } from '../../src/supervisor/process-lifecycle.ts';
import { silentLog } from './silent-log.ts';

const [role = ''] = process.argv.slice(2);
const { FAKE_EVENTS = '/dev/null', FAKE_DRAIN_MS = '0', FAKE_BROKEN = '', FAKE_INFLIGHT = '0' } = process.env;

function note(event: string): void {
  appendFileSync(FAKE_EVENTS, `${role} ${process.pid} ${event}\n`);
}

if (FAKE_BROKEN !== '' && existsSync(`${FAKE_BROKEN}.${role}`)) {
  note('broken');
  process.exit(7);
}

const metrics = new MetricsRegistry();
metrics.counter('fake_starts_total', 'Starts of fake processes.', ['role']).labels(role).increment();
if (role === 'gateway') metrics.gauge('tollgate_inflight', 'Open requests.').labels().set(Number(FAKE_INFLIGHT));
const lifecycle = new ProcessLifecycle({
  log: silentLog,
  metrics,
  supervised: true,
  outlastsGateways: role !== 'gateway',
  drainLimitMs: 5_000,
  orphanLimitMs: 1_000,
});
lifecycle.drainsWith({
  notReady: () => (existsSync(`${FAKE_BROKEN}.lacks.${role}`) ? ['what it needs'] : []),
  async drain() {
    note('drain');
    await new Promise((resolve) => setTimeout(resolve, Number(FAKE_DRAIN_MS)));
    note('drained');
  },
});
while (existsSync(`${FAKE_BROKEN}.slow.${role}`)) await new Promise((resolve) => setTimeout(resolve, 50));
// The note is written before the message is sent, so that notes are in the order of the supervisor's decisions.
note('ready');
lifecycle.ready();
// Keeps the process alive, even without a channel.
setInterval(() => undefined, 60_000);
