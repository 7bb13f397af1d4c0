// Reads from /proc/net/tcp what the system on the gateway's side knows of the clients' connections.

import { readFileSync } from 'node:fs';

/** The TCP states in which everything that the client sent, including its end, has arrived. */
const ENDED_STATES = new Set(['06' /* TIME_WAIT */, '08' /* CLOSE_WAIT */, '09' /* LAST_ACK */, '0B' /* CLOSING */]);

/** One client connection, as the gateway's system sees it. */
interface ConnectionEnd {
  readonly hasCome: boolean;
  /** The gateway has read everything before the end, so it has accepted the connection. */
  readonly isRead: boolean;
}

/**
 * Returns a function that says whether the client's end of the connection from this port has reached the system on the
 * gateway's side. A connection that a reset ended is gone from the table. A gateway may not have read the end yet: a
 * connection that it has paused stays in CLOSE_WAIT until it is read again. null: the system does not tell.
 */
export function readConnectionEnds(gatewayPort: number): ((clientPort: number) => ConnectionEnd) | null {
  let table: string;
  try {
    table = readFileSync('/proc/net/tcp', 'latin1');
  } catch {
    return null;
  }
  const local = `:${hexOf(gatewayPort)}`;
  const ends = new Map<string, ConnectionEnd>();
  for (const line of table.split('\n')) {
    const [, own = '', other = '', state = '', queues = ''] = line.trim().split(/\s+/);
    if (!own.endsWith(local)) continue;
    // The end itself counts as a byte.
    const isRead = Number.parseInt(queues.split(':')[1] ?? '0', 16) <= 1;
    ends.set(other.slice(other.indexOf(':') + 1), { hasCome: ENDED_STATES.has(state), isRead });
  }
  return (clientPort) => ends.get(hexOf(clientPort)) ?? RESET;
}

const RESET: ConnectionEnd = { hasCome: true, isRead: true };

function hexOf(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
