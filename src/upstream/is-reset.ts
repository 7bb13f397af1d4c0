// Tells a connection that was reset from one that the provider ended: libuv tells a reset that comes together with
// bytes as an end.

import type { Socket } from 'node:net';

/**
 * Of a socket that has come to its end. The system knows no peer of a connection that was reset; whoever asks for it
 * before must not let Node keep the answer on the socket (platform/egress/egress-guard.ts).
 */
export function isReset(socket: Socket): boolean {
  return socket.errored !== null || socket.remoteAddress === undefined;
}
