// Loaded into the gateway processes of a run (NODE_OPTIONS --import): some of what they send over plain connections
// goes as over a slow line.
//
// A loopback connection takes a body of a megabyte at once, and nothing is left in the process that a socket could
// still read. Over a network the system takes what its send buffer holds, some tens of kilobytes, and reads the rest of
// the memory when the other side has read: that is what this does.

import { Socket } from 'node:net';

/**
 * A longer write is sent in this many pieces, each after this many other writes, so that what happens in between does
 * not depend on the speed of the machine.
 */
const SHORT_BYTES = 32_768;
const PIECES = 12;
const WRITES_BETWEEN = 10;
/** The pause between pieces when nothing else is written. */
const PIECE_MS_MAX = 100;
/** Every how many large writes one is slow. */
const SLOW_EVERY = 2;

type WriteDone = (error?: Error | null) => void;
interface SocketWrites {
  _write(chunk: unknown, encoding: BufferEncoding, done: WriteDone): void;
  _writev(chunks: readonly { chunk: unknown; encoding: BufferEncoding }[], done: WriteDone): void;
}

let largeWrites = 0;
let writesBefore = 0;
const waiting: { readonly atWrite: number; readonly next: () => void }[] = [];

/** Calls `next` after a number of other writes, or after a while. */
function later(next: () => void): void {
  const entry = { atWrite: writesBefore + WRITES_BETWEEN, next };
  waiting.push(entry);
  setTimeout(() => {
    const place = waiting.indexOf(entry);
    if (place === -1) return;
    waiting.splice(place, 1);
    next();
  }, PIECE_MS_MAX);
}

function passOn(): void {
  writesBefore += 1;
  while ((waiting[0]?.atWrite ?? Number.POSITIVE_INFINITY) <= writesBefore)
    setImmediate(waiting.shift()?.next as () => void);
}

function isSlow(socket: Socket, bytes: number): boolean {
  // TLS copies what it sends at once. A socket without a port is the database's.
  if (bytes <= SHORT_BYTES || 'encrypted' in socket || socket.remotePort === undefined) return false;
  largeWrites += 1;
  return largeWrites % SLOW_EVERY === 0;
}

const writes = Socket.prototype as unknown as SocketWrites;
// oxlint-disable-next-line typescript/unbound-method -- called with its socket below
const { _write: writeOne } = writes;

writes._write = function (this: Socket, chunk, encoding, done) {
  if (!(chunk instanceof Uint8Array) || !isSlow(this, chunk.length)) {
    writeOne.call(this as unknown as SocketWrites, chunk, encoding, done);
    if (this.remotePort !== undefined) passOn();
    return;
  }
  const pieceBytes = Math.ceil(chunk.length / PIECES);
  let at = 0;
  const next = (error?: Error | null): void => {
    if (error !== undefined && error !== null) return done(error);
    if (at === chunk.length) return done();
    if (this.destroyed) return done(new Error('closed while it was being written'));
    const piece = chunk.subarray(at, at + pieceBytes);
    at += piece.length;
    writeOne.call(this as unknown as SocketWrites, piece, encoding, (failed) => {
      if (failed !== undefined && failed !== null) done(failed);
      else later(next);
    });
  };
  next();
};

// oxlint-disable-next-line typescript/unbound-method -- called with its socket below
const { _writev: writeMany } = writes;

writes._writev = function (this: Socket, chunks, done) {
  // Strings among the chunks are heads.
  const bytes = chunks.reduce((sum, { chunk }) => sum + (chunk instanceof Uint8Array ? chunk.length : 0), 0);
  if (bytes <= SHORT_BYTES) {
    writeMany.call(this as unknown as SocketWrites, chunks, done);
    return;
  }
  const write = (index: number): void => {
    const chunk = chunks[index];
    if (chunk === undefined) return done();
    const data = typeof chunk.chunk === 'string' ? Buffer.from(chunk.chunk, chunk.encoding) : chunk.chunk;
    (this as unknown as SocketWrites)._write(data, 'buffer' as BufferEncoding, (error) =>
      error === undefined || error === null ? write(index + 1) : done(error),
    );
  };
  write(0);
};
