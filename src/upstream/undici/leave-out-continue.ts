// Leaves out of what undici reads the `100 Continue` that a server may send before its reply although nobody waited for
// it (RFC 9110, 15.2): undici takes it for the end of the connection (8.12.4).

import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import { HEAD_BYTES_MAX } from '../connection-limits.ts';

const CONTINUE = /^HTTP\/1\.[01] 100[ \r]/;
/** What tells one from a reply; no reply is shorter. */
const TELLING_BYTES = 'HTTP/1.1 100 '.length;
const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

/** Until the next reply on this socket begins. undici reads a socket by `read` alone. */
export function leaveOutContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  let held: Buffer = NOTHING;
  socket.read = (bytes) => {
    const chunk = read(bytes) as Buffer | null;
    if (chunk === null) return null;
    held = behindContinue(held.length === 0 ? chunk : Buffer.concat([held, chunk]));
    if (isUndecided(held)) return null;
    // Its class's own is what it has again.
    Reflect.deleteProperty(socket, 'read');
    return held;
  };
}

function behindContinue(bytes: Buffer): Buffer {
  let rest = bytes;
  while (isContinue(rest)) {
    const end = rest.indexOf(HEAD_END);
    if (end === -1) break;
    rest = rest.subarray(end + HEAD_END.length);
  }
  return rest;
}

/** The next bytes may show that they are one, or end it. */
function isUndecided(bytes: Buffer): boolean {
  return bytes.length < TELLING_BYTES || (isContinue(bytes) && bytes.length <= HEAD_BYTES_MAX);
}

function isContinue(bytes: Buffer): boolean {
  return CONTINUE.test(bytes.toString('latin1', 0, TELLING_BYTES));
}
