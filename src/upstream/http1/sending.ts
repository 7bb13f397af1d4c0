// When and in how many writes a request goes out on a connection to a provider.

import { BufferPool, type PooledBuffer } from '../../platform/buffer-pool.ts';
import { atTickEnd, isTickEnd } from '../../platform/event-loop/tick.ts';

/** What `sendSoon` needs of a connection. */
interface WaitingConnection {
  send(): void;
}

/**
 * Kept connections that send their request at the end of the next tick of the event loop, when every socket has been
 * polled once more. A stray reply that lies unread on a kept connection must not be taken for the reply to this request
 * (response queue poisoning), and a dead connection is better noticed before it is used.
 */
let sending: WaitingConnection[] = [];
/** After so many counted ticks every socket has been polled, so a connection that became free before them was read. */
export const TICKS_UNTIL_POLLED = 2;

/**
 * Copying up to so many bytes costs less than one more piece in a write; over TLS that piece would be copied as well.
 */
const GATHERED_BYTES_MAX = 32_768;

/** The operating system nearly always takes a write at once, so a few buffers serve all connections. */
const gatheredPool = new BufferPool({ freeBytesMax: 1_048_576 });

/** A request's head and the first short pieces of its body, in one buffer. */
export interface Gathered {
  /** The sender releases this buffer once nobody reads it any more. */
  readonly pooled: PooledBuffer;
  readonly bytes: number;
  /**
   * How many pieces of the body are in the buffer: nearly always all of a short body, else those before the long one.
   */
  readonly pieces: number;
}

/** Puts the head and the first pieces together as long as they are short. */
export function gather(head: string, pieces: readonly Uint8Array[]): Gathered {
  let bytes = head.length;
  let count = 0;
  for (const { length } of pieces) {
    if (bytes + length > GATHERED_BYTES_MAX) break;
    bytes += length;
    count += 1;
  }
  const pooled = gatheredPool.acquire(bytes);
  const { buffer } = pooled;
  let at = buffer.write(head, 0, 'latin1');
  for (let index = 0; index < count; index++) {
    const piece = pieces[index] as Uint8Array;
    buffer.set(piece, at);
    at += piece.length;
  }
  return { pooled, bytes, pieces: count };
}

/** Lets the connection send at the end of the next tick. */
export function sendSoon(connection: WaitingConnection): void {
  // In the middle of a tick, not all sockets that were ready have been read. So the wait begins at the end of this
  // tick.
  if (!isTickEnd()) {
    atTickEnd(() => sendSoon(connection));
    return;
  }
  if (sending.length === 0) atTickEnd(sendAll);
  sending.push(connection);
}

function sendAll(): void {
  const connections = sending;
  sending = [];
  for (const connection of connections) connection.send();
}
