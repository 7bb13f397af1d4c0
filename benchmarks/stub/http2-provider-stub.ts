// A provider behind TLS that speaks only HTTP/2 and gives the answers of tls-provider-stub.ts, after the same latency.
// Run: node benchmarks/stub/http2-provider-stub.ts <certificate> <key>. It prints the port it listens on and ends when
// its parent does.

import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { endWithParent } from '../harness/end-with-parent.ts';
import { chatCompletionBody } from './reply-bodies.ts';

const [certificate = '', key = ''] = process.argv.slice(2);
const server = createSecureServer({ cert: readFileSync(certificate), key: readFileSync(key) });
server.on('stream', (stream, { ':path': path = '' }) => {
  const [, , bytes, latency] = path.split('/');
  stream.on('error', () => undefined);
  stream.resume();
  stream.on('end', () => {
    const body = Buffer.from(chatCompletionBody(Number(bytes)));
    const head = { ':status': 200, 'content-type': 'application/json', 'content-length': body.length };
    const answer = (): void => {
      if (stream.destroyed) return;
      stream.respond(head);
      stream.end(body);
    };
    const latencyMs = Number(latency);
    if (latencyMs > 0) setTimeout(answer, latencyMs);
    else answer();
  });
});
endWithParent();
server.listen(0, '127.0.0.1', 4_096, () => console.log(`listening ${(server.address() as AddressInfo).port}`));
