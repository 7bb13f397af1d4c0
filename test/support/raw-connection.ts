// A TCP connection on which a test writes exactly the bytes it wants, in the pieces it wants, and reads whatever comes back.

import { connect } from 'node:net';
import { type SplitPlan, splitBytes } from './byte-splits.ts';
import { pause } from './waiting.ts';

export interface RawExchange {
  /** Everything the server sent. */
  readonly received: string;
  /** The server ended the connection, by FIN or RST, before the test did. */
  readonly closedByServer: boolean;
}

/** How long a connection may be silent before the test takes it that nothing more comes. */
const QUIET_MS = 400;
const TOTAL_MS = 20_000;

/** Writes `bytes`, each piece as a packet of its own, then reads until the server closes or has been quiet after answering. */
export async function exchangeRaw(port: number, bytes: Buffer, split: SplitPlan): Promise<RawExchange> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  let closedByServer = false;
  let lastByteMs = performance.now();
  socket.setEncoding('latin1');
  socket.on('error', () => {
    closedByServer = true;
  });
  socket.on('end', () => {
    closedByServer = true;
  });
  socket.on('data', (text: string) => {
    received += text;
    lastByteMs = performance.now();
  });
  await new Promise((resolve) => socket.once('connect', resolve).once('error', resolve));
  for (const piece of splitBytes(bytes, split)) {
    if (closedByServer || socket.destroyed) break;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const startedMs = performance.now();
  lastByteMs = startedMs;
  while (!closedByServer && performance.now() - startedMs < TOTAL_MS && performance.now() - lastByteMs < QUIET_MS) await pause(10);
  socket.destroy();
  return { received, closedByServer };
}

/** Status codes of the final responses in what a server sent; interim (1xx) ones are not counted. */
export function finalStatuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((match) => Number(match[1])).filter((status) => status >= 200);
}
