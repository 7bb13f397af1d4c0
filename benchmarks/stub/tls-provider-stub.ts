// A provider behind TLS: fixed chat completions, after a latency or at once, and a count of the connections it
// accepted.
//   /json/<bytes>/<latencyMs>/...   a chat completion of that many bytes after so long; without a latency at once
//   GET /connections                how many connections it accepted so far
// Run: node benchmarks/stub/tls-provider-stub.ts <certificate> <key>. It prints the port it listens on and ends when
// its parent does.

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { endWithParent } from '../harness/end-with-parent.ts';
import { chatCompletionBody } from './reply-bodies.ts';

const [certificate = '', key = ''] = process.argv.slice(2);
const replies = new Map<number, Buffer>();
let accepted = 0;

function replyOf(body: Buffer, type: string): Buffer {
  return Buffer.concat([
    Buffer.from(
      `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nx-request-id: req_bench\r\ncontent-length: ${body.length}\r\n\r\n`,
    ),
    body,
  ]);
}

function completionOf(bytes: number): Buffer {
  let reply = replies.get(bytes);
  if (reply === undefined)
    replies.set(bytes, (reply = replyOf(Buffer.from(chatCompletionBody(bytes)), 'application/json')));
  return reply;
}

function answer(socket: TLSSocket, path: string): void {
  const [, kind, bytes, latency] = path.split('/');
  if (kind === 'connections') return void socket.write(replyOf(Buffer.from(String(accepted)), 'text/plain'));
  const latencyMs = Number(latency);
  const reply = completionOf(Number(bytes));
  if (latencyMs > 0) setTimeout(() => socket.write(reply), latencyMs);
  else socket.write(reply);
}

/** Reads requests one after the other: every proxy here sends the next request only after the reply to the last. */
function serve(socket: TLSSocket): void {
  accepted += 1;
  let head = '';
  let bodyLeft = 0;
  let path = '';
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    let at = 0;
    if (bodyLeft === 0) {
      head += bytes.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      at = bytes.length - (head.length - end - 4);
      bodyLeft = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(head.slice(0, end + 2))?.[1] ?? 0);
      path = head.split(' ', 2)[1] ?? '';
      head = '';
    }
    bodyLeft -= bytes.length - at;
    if (bodyLeft > 0) return;
    bodyLeft = 0;
    answer(socket, path);
  });
}

const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, serve);
endWithParent();
server.listen(0, '127.0.0.1', 4_096, () => console.log(`listening ${(server.address() as AddressInfo).port}`));
