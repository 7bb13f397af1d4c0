// A TCP connection on which a test writes exactly the bytes it wants, in the pieces it wants, and reads whatever comes
// back.

import { connect } from 'node:net';
import { type SplitPlan, splitBytes } from './byte-splits.ts';
import { pause } from './waiting.ts';

export interface RawExchange {
  /** Everything that the server had sent when it closed the connection or had been quiet for a while. */
  readonly received: string;
  /** The server has ended the connection, by FIN or RST. */
  readonly closedByServer: boolean;
}

export interface OpenRawExchange extends RawExchange {
  /** Resolves when the server ends the connection. */
  readonly closed: Promise<void>;
  destroy(): void;
}

/** After so many quiet moments the test assumes that nothing more will come. */
const QUIET_MOMENTS = 3;
const MOMENT_MS = 130;

/**
 * Like `exchangeRaw`, but the connection stays open for the test to watch. `passMoment` waits for one moment; better
 * than a pause is an action of the server that must come after its work on this connection.
 */
export async function openRaw(
  port: number,
  bytes: Buffer,
  split: SplitPlan,
  passMoment: () => Promise<unknown> = () => pause(MOMENT_MS),
): Promise<OpenRawExchange> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  let closedByServer = false;
  const closed = new Promise<void>((resolve) => {
    const onEnd = (): void => {
      closedByServer = true;
      resolve();
    };
    socket.on('end', onEnd).on('error', onEnd).on('close', onEnd);
  });
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => (received += text));
  await Promise.race([new Promise((resolve) => socket.once('connect', resolve)), closed]);
  for (const piece of splitBytes(bytes, split)) {
    if (closedByServer) break;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let moments = 0; !closedByServer && moments < QUIET_MOMENTS; ) {
    const before = received.length;
    await passMoment();
    moments = received.length === before ? moments + 1 : 0;
  }
  return {
    received,
    closed,
    get closedByServer() {
      return closedByServer;
    },
    destroy: () => socket.destroy(),
  };
}

/** Writes `bytes`, each piece as a packet of its own, then reads until the server closes or has been quiet. */
export async function exchangeRaw(
  port: number,
  bytes: Buffer,
  split: SplitPlan,
  passMoment?: () => Promise<unknown>,
): Promise<RawExchange> {
  const exchange = await openRaw(port, bytes, split, passMoment);
  const { received, closedByServer } = exchange;
  exchange.destroy();
  return { received, closedByServer };
}

/** Status codes of the final responses in what a server sent; interim (1xx) ones are not counted. */
export function finalStatuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.[01] (\d{3})/g)]
    .map((match) => Number(match[1]))
    .filter((status) => status >= 200);
}
