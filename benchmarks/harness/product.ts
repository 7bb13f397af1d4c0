// The product as a proxy of a run: a whole installation of its own in a temporary directory, one gateway process, every
// feature on.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../test/support/free-port.ts';
import { removeInstallation } from '../../test/support/remove-installation.ts';
import { endWithThis, stopChild } from './child-server.ts';
import { LOAD_CORE, onCore, PROXY_CORE, pinToCore } from './cores.ts';
import { CLIENT_HEADERS, modelOf, type Proxy, STUB_REPLIES, type StubReply, untilListening } from './proxies.ts';

const COMMAND = fileURLToPath(new URL('../../bin/tollgate.js', import.meta.url));
const START_TIMEOUT_MS = 60_000;
/**
 * After this time a wallet that the stopped jobs process had locked can be lent from again
 * (src/storage/postgres/pool.ts).
 */
const POSTGRES_LETS_GO_MS = 6_000;
/** The reply of the model that all routed requests reach. */
export const ROUTED_REPLY: StubReply = 'json/1024';
export const AUTO_MODEL = 'service/auto';
/** The token of the platform's administrator. */
export const ADMIN_TOKEN = 'tg-benchmark-admin-0123456789abcdefghijklmnop';

export interface Product extends Proxy {
  readonly gatewayPid: number;
  readonly jobsPid: number;
  readonly dataDirectory: string;
  /**
   * Stops the jobs process for the rest of the run. It would share the load generator's core, and after full load it
   * ships a backlog for minutes. The gateway's own work stays the same.
   */
  suspendJobs(): Promise<void>;
  /** The whole text of /metrics. */
  metrics(): Promise<string>;
}

/** How the product calls providers, and the name of the proxy in the run. */
export interface Transport {
  readonly name: string;
  readonly client: 'own' | 'undici';
  readonly http: 1 | 2;
  /** Further organizations, in the words of the configuration file, beside the measured one. */
  readonly otherOrganizations?: string;
  /** Settings in addition to those of every run. */
  readonly environment?: Readonly<Record<string, string>>;
}

export const OWN_CLIENT: Transport = { name: 'tollgate', client: 'own', http: 1 };

/**
 * Starts an installation; null if this checkout has no `tollgate` command yet. NODE_OPTIONS reach every process of the
 * installation, for profiling. `prepare` gets the data directory before the start. `certificate` is the file of the
 * certificate that the stub shows over TLS; null: the stub listens without TLS.
 */
export async function startProduct(
  stubPort: number,
  prepare: (dataDirectory: string) => Promise<void> = async () => {},
  certificate: string | null = null,
  transport: Transport = OWN_CLIENT,
): Promise<Product | null> {
  if (!existsSync(COMMAND)) return null;
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const dataDirectory = join(directory, 'data');
  const file = join(directory, 'tollgate.yaml');
  writeFileSync(
    file,
    configuration(
      certificate === null ? `http://127.0.0.1:${stubPort}` : `https://localhost:${stubPort}`,
      transport.http,
      transport.otherOrganizations ?? '',
    ),
  );
  await prepare(dataDirectory);
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const [command, args] = onCore(LOAD_CORE, process.execPath, [COMMAND, 'start', '--config', file]);
  const log: string[] = [];
  const child = spawn(command, args, {
    cwd: directory,
    env: {
      ...process.env,
      HOST: '127.0.0.1',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      GATEWAY_PROCESSES: '1',
      DATA_DIR: dataDirectory,
      DRAIN_SECONDS: '2',
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn',
      BENCH_KEY: (CLIENT_HEADERS.authorization ?? '').replace('Bearer ', ''),
      ADMIN_TOKEN,
      ...(transport.client === 'undici' ? { UPSTREAM_CLIENT: 'undici' } : {}),
      ...(certificate === null ? {} : { NODE_EXTRA_CA_CERTS: certificate }),
      ...transport.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let suspendedPid: number | null = null;
  const resumeJobs = (): void => {
    if (suspendedPid !== null) process.kill(suspendedPid, 'SIGCONT');
    suspendedPid = null;
  };
  // A jobs process that stands still does not end, and the installation waits for it.
  endWithThis(child, () => {
    child.kill();
    resumeJobs();
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => log.push(String(chunk)));
  const stop = async (): Promise<void> => {
    resumeJobs();
    await stopChild(child);
    if (process.env.BENCH_KEEP !== undefined) return;
    removeInstallation(dataDirectory);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await untilReady(adminPort, () => child.exitCode === null);
    await untilListening(port);
  } catch (error) {
    await stop();
    throw new Error(`the product did not start:\n${log.join('')}`, { cause: error });
  }
  const { processes } = JSON.parse(readFileSync(join(dataDirectory, 'processes.json'), 'utf8')) as {
    processes: { name: string; pid: number }[];
  };
  const pidOf = (prefix: string): number => processes.find((entry) => entry.name.startsWith(prefix))?.pid ?? 0;
  const gatewayPid = pidOf('gateway');
  const jobsPid = pidOf('jobs');
  pinToCore(gatewayPid, PROXY_CORE);
  return {
    name: transport.name,
    port,
    pids: [gatewayPid],
    gatewayPid,
    jobsPid,
    dataDirectory,
    address: (reply) => ({ path: '/v1/chat/completions', headers: CLIENT_HEADERS, model: modelOf(reply) }),
    exactBytes: true,
    suspendJobs: async () => {
      if (suspendedPid !== null) return;
      suspendedPid = jobsPid;
      process.kill(jobsPid, 'SIGSTOP');
      await sleep(POSTGRES_LETS_GO_MS);
    },
    metrics: async () => {
      const { body } = await request(adminPort, '/metrics');
      return body;
    },
    stop,
  };
}

/**
 * One provider and model per reply of the stub; the provider's own model id differs in length, so each request is
 * spliced.
 */
function configuration(stubOrigin: string, http: 1 | 2, otherOrganizations: string): string {
  const providers = STUB_REPLIES.map(
    (reply) =>
      `  - { id: ${idOf(reply)}, base_url: "${stubOrigin}/${reply}", api_key: sk-stub-0123456789, ` +
      `auth: bearer, on_disconnect: cancel${http === 2 ? ', http: 2' : ''} }\n`,
  );
  const models = STUB_REPLIES.map(
    (reply) => `  - id: ${modelOf(reply)}
    display_name: ${modelOf(reply)}
    kind: text
    context_length: 2000000
    max_output_tokens: 16384
    max_completion_tokens_cap: 16384
    tokenizer: o200k_base
    served_by:
      - provider: ${idOf(reply)}
        model: stub-model-2026-11-20
        apis: [chat_completions]
        price: { input: "1.25", cached_input: "0.125", cache_write: "1.25", output: "10.00" }
`,
  );
  return `providers:
${providers.join('')}models:
${models.join('')}  - id: bench/judge
    kind: evaluation
    served_by: [{ provider: ${idOf(ROUTED_REPLY)}, model: judge, apis: [systemone], price: { input: "0.042" } }]
routing_policies:
  - name: default
    classifier: { model: bench/judge, timeout_ms: 5000 }
    tiers:
      - { name: light, description: "Small talk and small questions.", models: [{ id: ${modelOf(ROUTED_REPLY)} }] }
      - { name: strong, description: "Everything else.", models: [{ id: ${modelOf(ROUTED_REPLY)} }] }
organizations:
  - slug: bench
    billing: prepaid
    auto_routing: { policy: default }
    opening_credit: "100000000.00"
    users: [{ email: bench@bench.test, role: owner }]
    keys: [{ name: bench, user: bench@bench.test, secret: "\${BENCH_KEY}" }]
${otherOrganizations}`;
}

function idOf(reply: string): string {
  return reply.replaceAll('/', '-');
}

async function untilReady(adminPort: number, isAlive: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadlineMs && isAlive()) {
    const ready = await request(adminPort, '/readyz').catch(() => null);
    if (ready?.status === 200) return;
    await sleep(100);
  }
  throw new Error('it is not ready');
}

function request(port: number, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const call = httpRequest({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    call.on('error', reject);
    call.end();
  });
}
