// A TCP connection on which a test writes exactly the bytes it wants, in the pieces it wants, and reads whatever comes
// back.

import { connect } from 'node:net';
import { type SplitPlan, splitBytes } from './byte-splits.ts';
import { pause } from './waiting.ts';

export interface RawExchange {
  /** Everything the server had sent when it closed or had been quiet for a while. */
  readonly received: string;
  /** The server had ended the connection, by FIN or RST. */
  readonly closedByServer: boolean;
}

export interface OpenRawExchange extends RawExchange {
  /** Resolves when the server ends the connection. */
  readonly closed: Promise<void>;
  destroy(): void;
}

/** How long a connection may be silent before the test takes it that nothing more comes. */
const QUIET_MS = 400;

/** As `exchangeRaw`, but the connection stays open for the test to watch. */
export async function openRaw(port: number, bytes: Buffer, split: SplitPlan): Promise<OpenRawExchange> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  let closedByServer = false;
  let lastByteMs = performance.now();
  const closed = new Promise<void>((resolve) => {
    const onEnd = (): void => {
      closedByServer = true;
      resolve();
    };
    socket.on('end', onEnd).on('error', onEnd).on('close', onEnd);
  });
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    received += text;
    lastByteMs = performance.now();
  });
  await Promise.race([new Promise((resolve) => socket.once('connect', resolve)), closed]);
  for (const piece of splitBytes(bytes, split)) {
    if (closedByServer) break;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  lastByteMs = performance.now();
  while (!closedByServer && performance.now() - lastByteMs < QUIET_MS) await pause(10);
  return { received, closedByServer, closed, destroy: () => socket.destroy() };
}

/** Writes `bytes`, each piece as a packet of its own, then reads until the server closes or has been quiet. */
export async function exchangeRaw(port: number, bytes: Buffer, split: SplitPlan): Promise<RawExchange> {
  const exchange = await openRaw(port, bytes, split);
  exchange.destroy();
  return { received: exchange.received, closedByServer: exchange.closedByServer };
}

/** Status codes of the final responses in what a server sent; interim (1xx) ones are not counted. */
export function finalStatuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.[01] (\d{3})/g)]
    .map((match) => Number(match[1]))
    .filter((status) => status >= 200);
}
