// The installation that a run attacks, and single gateway processes beside it on the same database, into which a fault
// may be planted.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN } from '../support/identity-world.ts';
import { waitFor } from '../support/waiting.ts';

const CERTIFICATE = fileURLToPath(new URL('../support/tls/localhost-certificate.pem', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const SLOW_LINES = new URL('./slow-lines.ts', import.meta.url).href;
const PLANT = new URL('./plant.ts', import.meta.url).href;
const NODE_OPTIONS = `--disable-warning=ExperimentalWarning --import=${SLOW_LINES}`;
/**
 * NODE_OPTIONS of the installation, which include those of the test run. A gateway with a planted fault loads the
 * sources instead.
 */
const INSTALLATION_NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} ${NODE_OPTIONS}`;
const STOP_TIMEOUT_MS = 20_000;
/** Files have public addresses, from which no other file must be readable. */
const MEDIA = { MEDIA: 'disk', MEDIA_PUBLIC_URL: 'https://files.isolation.test' } as const;
/** The master key of the installation and of the gateways beside it. */
export const MASTER_KEY = randomBytes(32).toString('base64');

export function startInstallation(configurationYaml: string, gatewayProcesses: number): Promise<Tollgate> {
  return startTollgate({
    configurationYaml,
    gatewayProcesses,
    env: {
      ...MEDIA,
      NODE_EXTRA_CA_CERTS: CERTIFICATE,
      NODE_OPTIONS: INSTALLATION_NODE_OPTIONS,
      MASTER_KEY,
      ADMIN_TOKEN,
    },
  });
}

/** A gateway process beside the installation's own. */
export interface LoneGateway {
  readonly url: string;
  readonly adminUrl: string;
  stop(): Promise<void>;
}

/** Starts a gateway process; `planted` names the fault in it (planted-faults.ts). */
export async function startLoneGateway(tollgate: Tollgate, planted: string): Promise<LoneGateway> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  let output = '';
  const child = spawn(process.execPath, [COMMAND, 'gateway'], {
    env: {
      ...process.env,
      ...MEDIA,
      DATA_DIR: tollgate.dataDir,
      DATABASE_URL: tollgate.postgresUrl,
      MASTER_KEY,
      ADMIN_TOKEN,
      HOST: '127.0.0.1',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      LOG_LEVEL: 'warn',
      NODE_EXTRA_CA_CERTS: CERTIFICATE,
      NODE_OPTIONS: `${NODE_OPTIONS} --import=${PLANT}`,
      ISOLATION_PLANTED_FAULT: planted,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-20_000)));
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`the gateway ended before it was ready:\n${output}`);
    return (await httpCall(`${adminUrl}/readyz`).catch(() => null))?.status === 200;
  };
  await waitFor('the gateway to be ready', isReady, (ready) => ready, 60_000);
  return { url: `http://127.0.0.1:${port}`, adminUrl, stop: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const backstop = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(backstop);
}
