// Counts the new connections that Linux resets while listeners that share a port are replaced, under the present value
// of net.ipv4.tcp_migrate_req. To compare both values, use a network namespace: `unshare -n sh -c 'ip link set lo up;
// sysctl -w net.ipv4.tcp_migrate_req=1; node benchmarks/micro/replaced-listener.bench.ts'`; it takes ten seconds.

import { connect, createServer, type Server } from 'node:net';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const HOST = '127.0.0.1';
const PORT = 9911;
const CLIENTS = 16;
const LASTING_MS = 10_000;
const REPLACED_EACH_MS = 100;

interface Counts {
  readonly answered: number;
  readonly reset: number;
}

function listen(): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end('answer'));
    }).listen({ host: HOST, port: PORT, reusePort: true }, () => resolve(server));
  });
}

/** Resolves to true if the connection was answered. */
function askOnce(): Promise<boolean> {
  return new Promise((resolve) => {
    let answered = false;
    const socket = connect(PORT, HOST, () => socket.write('ask'));
    socket.on('data', () => {
      answered = true;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answered));
  });
}

async function askAllTheWhile(): Promise<Counts> {
  const untilMs = performance.now() + LASTING_MS;
  let answered = 0;
  let reset = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      if (await askOnce()) answered += 1;
      else reset += 1;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return { answered, reset };
}

if (isMainThread) {
  const servers = [await listen(), await listen()];
  let replaced = 0;
  const replace = async (): Promise<void> => {
    servers.push(await listen());
    servers.shift()?.close();
    replaced += 1;
  };
  const replacing = setInterval(() => void replace(), REPLACED_EACH_MS);
  const { answered, reset } = await new Promise<Counts>((resolve) => {
    new Worker(new URL(import.meta.url)).once('message', resolve);
  });
  clearInterval(replacing);
  for (const server of servers) server.close();
  console.log(`${replaced} listeners replaced: ${answered} connections answered, ${reset} reset`);
} else parentPort?.postMessage(await askAllTheWhile());
