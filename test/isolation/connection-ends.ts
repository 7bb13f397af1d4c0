// What the system on the gateway's side knows of its clients' connections, as /proc/net/tcp tells it.

import { readFileSync } from 'node:fs';

/** The states in which all that the client sent, and its end behind it, has come. */
const ENDED_STATES = new Set(['06' /* TIME_WAIT */, '08' /* CLOSE_WAIT */, '09' /* LAST_ACK */, '0B' /* CLOSING */]);

/**
 * Whether the client's end of the connection from this port has come to the system on the gateway's side. A connection
 * that a reset ended is gone from the table. A gateway may have left the end unread: a connection that it has paused
 * stays in CLOSE_WAIT until it is read again. null: the system does not tell.
 */
export function readConnectionEnds(gatewayPort: number): ((clientPort: number) => boolean) | null {
  let table: string;
  try {
    table = readFileSync('/proc/net/tcp', 'latin1');
  } catch {
    return null;
  }
  const local = `:${hexOf(gatewayPort)}`;
  const states = new Map<string, string>();
  for (const line of table.split('\n')) {
    const [, own = '', other = '', state = ''] = line.trim().split(/\s+/);
    if (own.endsWith(local)) states.set(other.slice(other.indexOf(':') + 1), state);
  }
  return (clientPort) => {
    const state = states.get(hexOf(clientPort));
    return state === undefined || ENDED_STATES.has(state);
  };
}

function hexOf(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
