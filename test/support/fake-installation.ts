// A real supervisor over fake processes, as a process of its own: `node fake-installation.ts DATA_DIR GATEWAYS
// ADMIN_PORT`.

import { fileURLToPath } from 'node:url';
import { takeInstallationLock } from '../../src/installation/installation-lock.ts';
import { StartFault } from '../../src/installation/start-fault.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog, logToStderr } from '../../src/platform/log.ts';
import { ProcessJournal } from '../../src/supervisor/process-journal.ts';
import { Supervisor } from '../../src/supervisor/supervisor.ts';

const [dataDirectory = '', gateways = '1', adminPort = '0'] = process.argv.slice(2);
const module = fileURLToPath(new URL('./fake-process.ts', import.meta.url));
const log = createLog({ level: 'warn', process: 'supervisor', destination: logToStderr() });

const taken = takeInstallationLock(dataDirectory);
if (!taken.ok) {
  console.error(`held by ${taken.holder.pid}`);
  process.exit(3);
}
await new ProcessJournal(dataDirectory).waitForPredecessors(log);
const supervisor = new Supervisor(
  {
    dataDirectory,
    gatewayProcesses: Number(gateways),
    drainLimitMs: 5_000,
    endsWithParent: process.env.FAKE_ENDS_WITH_PARENT !== undefined,
    watchStepMs: Number(process.env.FAKE_WATCH_STEP_MS ?? 5_000),
    adminPort: Number(adminPort),
    adminHost: '127.0.0.1',
    adminPortIsFixed: true,
    adminToken: null,
    postgres: { module, args: ['postgres'] },
    jobs: { module, args: ['jobs'] },
    gateway: { module, args: ['gateway'] },
    environment: () => process.env,
    prepare: async () => undefined,
    print: (text) => console.log(text),
    announce: () => console.log('announced'),
  },
  { log, clock: systemClock },
);
let exitCode = 0;
try {
  await supervisor.run();
} catch (error) {
  if (!(error instanceof StartFault)) throw error;
  console.error(error.message);
  exitCode = 1;
}
taken.lock.release();
process.exit(exitCode);
