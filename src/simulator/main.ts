// Runs the simulated provider as its own process: `node src/simulator/main.ts --port N --log FILE`. It does not know
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
    as: { type: 'string' },
  },
});

const log = openCallLog(values.log ?? null);
const simulator = await startSimulator({
  host: values.host,
  port: Number(values.port),
  delayMs: Number(values['delay-ms']),
  as: values.as,
  log,
});

// Log lines are written immediately, so exiting at once loses nothing.
function leave(): void {
  log.close();
  process.exit(0);
}
process.on('SIGTERM', leave);
if (process.send === undefined) {
  process.on('SIGINT', leave);
  process.stdout.write(`${JSON.stringify({ type: 'listening', url: simulator.url })}\n`);
} else {
  // Ctrl-C in a terminal reaches every process of the group; the parent decides when this one exits, so that it can
  // drain first.
  process.on('SIGINT', () => undefined);
  process.on('disconnect', leave);
  process.send({ type: 'listening', url: simulator.url });
}
