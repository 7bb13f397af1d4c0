// An address on this machine where nobody answers a connection attempt: a listener accepts nothing and its backlog is
// full, so the system leaves every further SYN without an answer, as for a host behind a dropping firewall.

import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { pause } from './waiting.ts';

export interface UnansweringAddress {
  readonly url: string;
  close(): Promise<void>;
}

/** Listens, prints the port, and never returns to its event loop, so nothing is ever accepted. */
const LISTENER = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer();
server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(new Int32Array(workerData), 0, 0);
});
`;

/** More connections than the system allows for a backlog of one. */
const FILLERS_MAX = 16;
/** On loopback a connection is made at once or never. */
const QUIET_MS = 300;

export async function startUnansweringAddress(): Promise<UnansweringAddress> {
  const gate = new SharedArrayBuffer(4);
  const worker = new Worker(LISTENER, { eval: true, workerData: gate });
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  const fillers: Socket[] = [];
  const address = {
    url: `http://127.0.0.1:${port}`,
    async close() {
      for (const filler of fillers) filler.destroy();
      Atomics.notify(new Int32Array(gate), 0);
      await worker.terminate();
    },
  };
  for (;;) {
    const filler = connect({ host: '127.0.0.1', port });
    filler.on('error', () => undefined);
    fillers.push(filler);
    const isConnected = await Promise.race([
      new Promise<true>((resolve) => filler.once('connect', () => resolve(true))),
      pause(QUIET_MS).then(() => false),
    ]);
    if (!isConnected) return address;
    if (fillers.length <= FILLERS_MAX) continue;
    await address.close();
    throw new Error('the backlog did not fill up');
  }
}
