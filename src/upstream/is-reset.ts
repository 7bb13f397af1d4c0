// Tells a connection that was reset from one that the provider closed. libuv reports a reset as a normal end when bytes
// arrive together with it.

import type { Socket } from 'node:net';

/**
 * Whether a socket that has ended was reset. The operating system has no peer address for a connection that was reset.
 * Node keeps the address on the socket once it is read, so code that reads it earlier must prevent that
 * (platform/egress/egress-guard.ts).
 */
export function isReset(socket: Socket): boolean {
  return socket.errored !== null || socket.remoteAddress === undefined;
}
