// Measures what large uploads that arrive faster than they can be stored cost a gateway: its memory, and how long they
// block its event loop. `node benchmarks/large-uploads.ts [--megabytes 1000] [--at-once 1] [--rounds 4]`: a whole
// installation, and clients over loopback that write everything at once, the fastest possible ones.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { LOAD_CORE, pinToCore } from './harness/cores.ts';
import { OWN_CLIENT, type Product, startProduct } from './harness/product.ts';

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '1000' },
    'at-once': { type: 'string', default: '1' },
    rounds: { type: 'string', default: '4' },
  },
});
const fileBytes = Number(values.megabytes) * 1_000_000;
const atOnce = Number(values['at-once']);
const rounds = Number(values.rounds);
const KEY = `tg-bench-large-${'k'.repeat(24)}`;
const BOUNDARY = 'benchmark-boundary';
/** Files differ in their first bytes, so that the organization has none of them already. */
const UUID_BYTES = 36;
const LOOK_MS = 10;
/** How long a round rests, until its memory is released. */
const REST_MS = 3_000;

pinToCore(process.pid, LOAD_CORE);
const product = await startProduct(1, undefined, null, {
  ...OWN_CLIENT,
  otherOrganizations: `  - slug: large
    billing: none
    users: [{ email: large@bench.test, role: owner }]
    keys: [{ name: bench, user: large@bench.test, secret: ${KEY} }]
`,
  environment: {
    MEDIA: 'disk',
    MEDIA_FILE_BYTES_MAX: String(fileBytes),
    MEDIA_ORGANIZATION_BYTES_MAX: String(fileBytes * (atOnce * rounds + 1)),
  },
});
if (product === null) throw new Error('this checkout has no command');
try {
  await uploadAll(product.port, 1_000_000, 1);
  await loopDelayMs(product);
  for (let round = 1; round <= rounds; round += 1) {
    const before = residentBytes(product.gatewayPid);
    let most = before;
    const look = setInterval(() => (most = Math.max(most, residentBytes(product.gatewayPid))), LOOK_MS);
    const started = performance.now();
    const statuses = await uploadAll(product.port, fileBytes, atOnce);
    clearInterval(look);
    const seconds = (performance.now() - started) / 1_000;
    console.log(
      `${atOnce} of ${values.megabytes} MB in ${seconds.toFixed(1)} s, answered ${statuses.join(', ')}: ` +
        `${((most - before) / 1e6).toFixed(0)} MB above ${(before / 1e6).toFixed(0)}, ` +
        `event loop held up for ${(await loopDelayMs(product)).toFixed(0)} ms at most`,
    );
    await sleep(REST_MS);
  }
} finally {
  await product.stop();
}

/** Returns the statuses of the answers; `cut` for a connection that ended without an answer. */
function uploadAll(port: number, bytes: number, count: number): Promise<readonly string[]> {
  return Promise.all(Array.from({ length: count }, () => upload(port, bytes)));
}

function upload(port: number, bytes: number): Promise<string> {
  const before =
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n` +
    `Content-Type: application/octet-stream\r\n\r\n${randomUUID()}`;
  const behind = `\r\n--${BOUNDARY}--\r\n`;
  const file = Buffer.alloc(bytes - UUID_BYTES, 'x');
  const head =
    `POST /v1/media/upload HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: close\r\n` +
    `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
    `content-length: ${before.length + file.length + behind.length}\r\n\r\n`;
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    for (const piece of [head, before, file, behind]) socket.write(piece);
    socket.on('data', (text) => (answer += text.toString()));
    socket.on('close', () => resolve(answer === '' ? 'cut' : answer.slice(9, 12)));
  });
}

async function loopDelayMs(installation: Product): Promise<number> {
  const [, seconds = 'NaN'] =
    /^tollgate_event_loop_delay_max_seconds\S* (\S+)/m.exec(await installation.metrics()) ?? [];
  return Number(seconds) * 1_000;
}

function residentBytes(pid: number): number {
  const [, kilobytes = 'NaN'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
