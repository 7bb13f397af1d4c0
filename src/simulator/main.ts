// The simulated provider as a process of its own: `node src/simulator/main.ts --port N --log FILE`. It knows nothing of
// the gateway.

import { parseArgs } from 'node:util';
import { openCallLog } from './call-log.ts';
import { startSimulator } from './server.ts';

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    log: { type: 'string' },
    'delay-ms': { type: 'string', default: '0' },
  },
});

const log = openCallLog(values.log ?? null);
const simulator = await startSimulator({
  host: values.host,
  port: Number(values.port),
  delayMs: Number(values['delay-ms']),
  log,
});

// Log lines are written as they arise, so leaving at once loses nothing.
function leave(): void {
  log.close();
  process.exit(0);
}
process.on('SIGTERM', leave);
if (process.send === undefined) {
  process.on('SIGINT', leave);
  process.stdout.write(`${JSON.stringify({ type: 'listening', url: simulator.url })}\n`);
} else {
  // A terminal's Ctrl-C reaches every process of the group; the parent says when it is time to go, so that it can drain
  // first.
  process.on('SIGINT', () => undefined);
  process.on('disconnect', leave);
  process.send({ type: 'listening', url: simulator.url });
}
