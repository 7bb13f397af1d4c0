// How soon a change of an own provider key holds on every gateway process: keys are rotated and removed under load, and
// the provider tells when it saw the old secret last. By hand: `node test/e2e/own-key-changes-run.ts --changes 300`.

import { Agent, request as httpRequest } from 'node:http';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ONE_TOKEN_REPLY, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate } from '../support/gateway.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { pause, waitFor } from '../support/waiting.ts';

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '300' },
    gateways: { type: 'string', default: '4' },
    connections: { type: 'string', default: '48' },
  },
});
/** Between two changes. How long a secret was used is asked at the end, so this cuts nothing off. */
const PAUSE_MS = 400;
const GOAL_MS = 1_000;

/** When a secret was seen last. */
const seenAtMs = new Map<string, number>();
const upstream = await startFakeUpstream((request) => {
  seenAtMs.set((request.header('authorization') ?? '').slice('Bearer '.length), performance.now());
  return ONE_TOKEN_REPLY;
});
const tollgate = await startTollgate({
  configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
  gatewayProcesses: Number(values.gateways),
  env: { ADMIN_TOKEN },
  clickhouse: 'away',
});
const statuses = new Map<number, number>();
let isOver = false;
try {
  const tenant = await Tenant.create(tollgate.url, 'changing');
  await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${tenant.id}/byok`, { enabled: true });
  const { secret } = await tenant.addKey();
  const load = run(secret);
  const ended = { rotated: await rotateOften(tenant), removed: await removeOften(tenant) };
  isOver = true;
  await load;
  const stale = { rotated: staleness(ended.rotated), removed: staleness(ended.removed) };
  for (const [what, found] of Object.entries(stale)) console.log(`${what}: ${summaryOf(found)}`);
  const answers = [...statuses].map(([status, count]) => `${status}: ${count}`).join(', ');
  const processes = await countProcesses();
  console.log(`${processes} processes answered (${answers})`);
  const isGood = Object.values(stale).every((found) => at(found, 0.99) <= GOAL_MS);
  process.exitCode = isGood && processes === Number(values.gateways) && statuses.size === 1 ? 0 : 1;
} finally {
  isOver = true;
  await tollgate.stop();
  await upstream.close();
}

/** Requests without a break, over connections to every process. */
async function run(key: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number(values.connections) });
  const work = async (): Promise<void> => {
    while (!isOver) await send(agent, key);
  };
  await Promise.all(Array.from({ length: Number(values.connections) }, work));
  agent.destroy();
}

function send(agent: Agent, key: string): Promise<void> {
  const body = '{"model":"sim/small","messages":[{"role":"user","content":"hi"}],"max_tokens":1}';
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${tollgate.url}/v1/chat/completions`, { method: 'POST', agent, headers });
    sent.on('error', reject);
    sent.on('response', (response) => {
      statuses.set(response.statusCode ?? 0, (statuses.get(response.statusCode ?? 0) ?? 0) + 1);
      response.resume();
      response.on('end', () => resolve());
    });
    sent.end(body);
  });
}

/** How many have served: each has an epoch of its own. */
async function countProcesses(): Promise<number> {
  const database = new pg.Client({ connectionString: tollgate.postgresUrl });
  await database.connect();
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(DISTINCT epoch)::integer AS count FROM generations`,
  );
  await database.end();
  return rows[0]?.count ?? 0;
}

/** A secret, and when the change that ended it was answered. */
type Ended = readonly [secret: string, answeredAtMs: number];

/** How long after the answer to a change each old secret was still seen. */
function staleness(ended: readonly Ended[]): readonly number[] {
  return ended.map(([secret, answeredAtMs]) => Math.max(0, (seenAtMs.get(secret) ?? 0) - answeredAtMs));
}

async function untilSeen(secret: string): Promise<void> {
  await waitFor(`${secret} to be used`, async () => seenAtMs.has(secret), Boolean);
}

async function rotateOften(tenant: Tenant): Promise<readonly Ended[]> {
  const key = { kind: 'upstream', name: 'ours', secret: 'sk-rotated-0', verify: false };
  const id = String((await tenant.as('POST', '/provider-credentials', key, 201))['id']);
  const found: Ended[] = [];
  for (let index = 1; index <= Number(values.changes); index += 1) {
    await untilSeen(`sk-rotated-${index - 1}`);
    await tenant.as('POST', `/provider-credentials/${id}/rotate`, { secret: `sk-rotated-${index}`, verify: false });
    found.push([`sk-rotated-${index - 1}`, performance.now()]);
    await pause(PAUSE_MS);
  }
  await tenant.as('DELETE', `/provider-credentials/${id}`);
  return found;
}

/** The one that is removed is tried first, and there is always one behind it. */
async function removeOften(tenant: Tenant): Promise<readonly Ended[]> {
  const make = async (index: number): Promise<string> => {
    const key = { kind: 'upstream', name: `key ${index}`, secret: `sk-removed-${index}`, verify: false };
    return String((await tenant.as('POST', '/provider-credentials', key, 201))['id']);
  };
  let id = await make(0);
  const found: Ended[] = [];
  for (let index = 1; index <= Number(values.changes); index += 1) {
    const next = await make(index);
    await untilSeen(`sk-removed-${index - 1}`);
    await tenant.as('DELETE', `/provider-credentials/${id}`);
    found.push([`sk-removed-${index - 1}`, performance.now()]);
    await pause(PAUSE_MS);
    id = next;
  }
  return found;
}

function at(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.ceil(share * values.length) - 1] ?? Number.NaN;
}

function summaryOf(found: readonly number[]): string {
  const [middle, late, most] = [0.5, 0.99, 1].map((share) => at(found, share).toFixed(1));
  return `${found.length} changes; the old secret was seen for ${middle} ms (p50), ${late} ms (p99), ${most} ms at most`;
}
