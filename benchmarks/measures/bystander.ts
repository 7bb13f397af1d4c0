// P16: the wait of a bystander (500 requests of 1 KB a second) beside an attack ÷ its wait without one, in each round.
// The attacks: unknown keys from 16 connections, as fast as they are answered; heads that declare 33 MB, 100 a second,
// also after a burst of 1,500; 100 bodies that send a byte every 100 ms under a valid key; an owner who creates keys as
// fast as the gateway allows; and a stopped jobs process. The attackers share the load generator's core: when it is
// full, the bystander waits for it, too. The row says what was sent, and how many of the bystander's requests were
// refused.

import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../harness/median.ts';
import { ADMIN_TOKEN, type Product, startProduct } from '../harness/product.ts';
import { CLIENT_HEADERS } from '../harness/proxies.ts';
import type { FixedRateJob } from '../load/job.ts';
import { type Measure, type Row, type Run, sample, targetOf } from './measure.ts';

const REQUESTS_PER_SECOND = 500;
/** How many windows an attack lasts. */
const WINDOWS = 2;
const GENERATION = '/v1/chat/completions';
const DECLARED_BYTES = 33_000_000;
const HEADS_PER_SECOND = 100;
const HEADS_BURST = 1_500;
const HEADS_OPEN_MAX = 200;
const FLOOD_CONNECTIONS = 16;
const SLOW_CONNECTIONS = 100;
const SLOW_PIECE_MS = 100;

/** An attack that goes on until `stop`, which resolves when it is over and says what the attack did. */
interface Attack {
  stop(): Promise<string>;
}

const ATTACKS: Readonly<Record<string, (product: Product) => Attack>> = {
  'a flood of unknown keys': floodUnknownKeys,
  'heads that declare 33 MB, 100 a second': (product) => declareBodies(product, 0),
  'a burst of 1,500 such heads, then 100 a second': (product) => declareBodies(product, HEADS_BURST),
  'slow bodies': sendSlowly,
  "one tenant's changes": changeKeys,
  'jobs that stand still': stopJobs,
};

export const bystander: Measure = {
  ids: ['P16'],
  async run(run) {
    if (run.product === null) return [];
    // The measure has its own installation: what an attack leaves behind must not disturb another measure, and no other
    // measure must stop its jobs.
    const product = await startProduct(run.direct.port);
    if (product === null) return [];
    try {
      const rows: Row[] = [];
      for (const [name, begin] of Object.entries(ATTACKS))
        rows.push(...(await measureBeside(run, product, name, begin)));
      return rows;
    } finally {
      await product.stop();
    }
  },
};

interface Taken {
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
}

async function measureBeside(
  run: Run,
  product: Product,
  name: string,
  begin: (product: Product) => Attack,
): Promise<Row[]> {
  const without: Taken[] = [];
  const beside: Taken[] = [];
  let did = '';
  await take(run, product);
  for (let round = 0; round < run.rounds; round++) {
    without.push(await take(run, product));
    const attack = begin(product);
    try {
      beside.push(await take(run, product));
    } finally {
      did = await attack.stop();
    }
  }
  const refused = beside.reduce((sum, taken) => sum + taken.refused, 0);
  return (['p50', 'p99'] as const).map((quantile) => ({
    id: 'P16',
    what: `a bystander's ${quantile} at ${REQUESTS_PER_SECOND}/s beside ${name}, over without`,
    unit: 'µs',
    values: { tollgate: median(beside.map((taken) => taken[quantile])) },
    figure: median(beside.map((taken, round) => taken[quantile] / (without[round] as Taken)[quantile])),
    goal: quantile === 'p99' ? 3 : null,
    goalIs: 'at most',
    note:
      `${median(without.map((taken) => taken[quantile])).toFixed(0)} without` +
      (quantile === 'p99' ? `; ${refused} of the bystander's refused; ${did}` : ''),
  }));
}

async function take(run: Run, product: Product): Promise<Taken> {
  const job: FixedRateJob = {
    kind: 'rate',
    target: targetOf(product, 'json/1024', '1k', 1024),
    requestsPerSecond: REQUESTS_PER_SECOND,
    warmupMs: run.warmupMs,
    durationMs: run.windowMs * WINDOWS,
  };
  const { result } = await sample(run.load, product, job);
  return { p50: result.latencyUs.p50, p99: result.latencyUs.p99, refused: result.errors };
}

/** Repeats `step` on this number of workers until it is stopped. */
function repeat(workers: number, step: () => Promise<void>, did: () => string): Attack {
  let stopping = false;
  const work = async (): Promise<void> => {
    while (!stopping) await step();
  };
  const working = Promise.all(Array.from({ length: workers }, work));
  // stop() reports a failure, however long ago it was.
  working.catch(() => {});
  return {
    async stop() {
      stopping = true;
      await working;
      return did();
    },
  };
}

function floodUnknownKeys({ port }: Product): Attack {
  const agent = new Agent({ keepAlive: true, maxSockets: FLOOD_CONNECTIONS });
  const body = JSON.stringify({ model: 'none', messages: [{ role: 'user', content: 'x'.repeat(900) }] });
  let sent = 0;
  const attack = repeat(
    FLOOD_CONNECTIONS,
    async () => {
      sent += 1;
      await call({ port, path: GENERATION, agent, token: `tg-unknown-${sent}-${'x'.repeat(30)}`, body }).catch(() =>
        sleep(10, null),
      );
    },
    () => `${sent} requests with unknown keys`,
  );
  return { stop: () => attack.stop().finally(() => agent.destroy()) };
}

function declareBodies({ port }: Product, burst: number): Attack {
  const open: Socket[] = [];
  let sent = 0;
  const sendOne = (): void => {
    sent += 1;
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(
      `POST ${GENERATION} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer tg-unknown-${sent}\r\n` +
        `content-type: application/json\r\ncontent-length: ${DECLARED_BYTES}\r\n\r\n{`,
    );
    open.push(socket);
    if (open.length > Math.max(HEADS_OPEN_MAX, burst)) open.shift()?.destroy();
  };
  for (let index = 0; index < burst; index++) sendOne();
  const timer = setInterval(sendOne, 1_000 / HEADS_PER_SECOND);
  return {
    async stop() {
      clearInterval(timer);
      for (const socket of open) socket.destroy();
      return `${sent} heads`;
    },
  };
}

/** Sends slow bodies with a valid key: a known caller may be slow. */
function sendSlowly({ port }: Product): Attack {
  const head =
    `POST ${GENERATION} HTTP/1.1\r\nhost: x\r\nauthorization: ${CLIENT_HEADERS.authorization ?? ''}\r\n` +
    'content-type: application/json\r\ncontent-length: 1000000\r\n\r\n{"messages":["';
  const sockets = Array.from({ length: SLOW_CONNECTIONS }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(head);
    return socket;
  });
  const timer = setInterval(() => sockets.forEach((socket) => socket.writable && socket.write('x')), SLOW_PIECE_MS);
  return {
    async stop() {
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
      return `${SLOW_CONNECTIONS} bodies of a byte every ${SLOW_PIECE_MS} ms`;
    },
  };
}

/** Creates keys as fast as the gateway allows, as an owner of the organization. */
function changeKeys({ port }: Product): Attack {
  let made = 0;
  let refused = 0;
  const owner = ownerToken(port);
  return repeat(
    4,
    async () => {
      const body = JSON.stringify({ name: `key ${made} ${refused}` });
      const { status } = await call({ port, path: '/v1/admin/active-org/keys', token: await owner, body });
      if (status < 300) made += 1;
      else refused += 1;
      // A refused change is retried, as an eager client would.
      if (status >= 300) await sleep(5);
    },
    () => `${made} keys made, ${refused} refused`,
  );
}

async function ownerToken(port: number): Promise<string> {
  const idIn = async (path: string): Promise<string> => {
    const { text } = await call({ port, method: 'GET', path, token: ADMIN_TOKEN });
    const id = /"(?:id|user_id)":"([0-9a-f-]{36})"/.exec(text)?.[1];
    if (id === undefined) throw new Error(`${path}: ${text.slice(0, 200)}`);
    return id;
  };
  const organization = `/v1/admin/organizations/${await idIn('/v1/admin/organizations')}`;
  const path = `${organization}/members/${await idIn(`${organization}/members`)}/tokens`;
  const { text } = await call({
    port,
    path,
    token: ADMIN_TOKEN,
    body: JSON.stringify({ name: 'benchmark', lifetime_seconds: 3_600 }),
  });
  const token = /"(?:token|secret)":"([^"]+)"/.exec(text)?.[1];
  if (token === undefined) throw new Error(`${path}: ${text.slice(0, 200)}`);
  return token;
}

function stopJobs({ jobsPid }: Product): Attack {
  process.kill(jobsPid, 'SIGSTOP');
  return {
    async stop() {
      process.kill(jobsPid, 'SIGCONT');
      return 'jobs stopped for the whole window';
    },
  };
}

interface Call {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  readonly method?: string;
  readonly agent?: Agent;
  readonly body?: string;
}

async function call({
  port,
  path,
  token,
  method = 'POST',
  agent,
  body,
}: Call): Promise<{ readonly status: number; readonly text: string }> {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
  };
  const asked = request({ host: '127.0.0.1', port, path, method, headers, agent: agent ?? false });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode ?? 0, text };
}
