// Uploads files over many connections without a pause: each connection sends its next file as soon as its last one is
// answered. node benchmarks/load/upload-files.ts PORT CONNECTIONS FILE_BYTES KEY... Ends when its standard input
// closes. Then it prints how many uploads got which status, and the body of the first answer of each status other than
// 200.

import { randomFillSync } from 'node:crypto';
import { connect } from 'node:net';

const BOUNDARY = 'benchmark-boundary';
/** Files differ in their first bytes, so that the organization has none of them already. */
const DISTINCT_BYTES = 16;

const [port = '', connections = '', fileBytes = '', ...keys] = process.argv.slice(2);
const before = Buffer.from(
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n',
);
const behind = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
const rest = randomFillSync(Buffer.alloc(Number(fileBytes) - DISTINCT_BYTES));
const answered = new Map<string, number>();

function uploadOver(key: string): void {
  const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
  const head = Buffer.from(
    `POST /v1/media/upload HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
      `content-length: ${before.length + Number(fileBytes) + behind.length}\r\n\r\n`,
  );
  let text = '';
  const send = (): void => {
    for (const piece of [head, before, randomFillSync(Buffer.alloc(DISTINCT_BYTES)), rest, behind]) socket.write(piece);
  };
  socket.on('connect', send);
  socket.on('data', (piece) => {
    text += piece.toString('latin1');
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1];
    const end = text.indexOf('\r\n\r\n') + 4;
    if (length === undefined || text.length < end + Number(length)) return;
    const status = text.slice(9, 12);
    if (status !== '200' && !answered.has(status)) console.log(text.slice(end));
    answered.set(status, (answered.get(status) ?? 0) + 1);
    text = '';
    send();
  });
  socket.on('close', () => uploadOver(key));
}

for (let index = 0; index < Number(connections); index++) uploadOver(keys[index % keys.length] ?? '');
process.stdin.on('end', () => {
  console.log([...answered].map(([status, count]) => `${count} answered ${status}`).join(', ') || 'none answered');
  process.exit(0);
});
process.stdin.resume();
