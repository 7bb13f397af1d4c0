// The gauges of a gateway that must return to zero once no request is open: exchanges, calls to providers, relays,
// holds, connections.

import { readFileSync } from 'node:fs';
import type { Tollgate } from './gateway.ts';
import { readMetrics } from './metric-values.ts';
import { waitFor } from './waiting.ts';

/** Each of these is 0 when no request is open. */
export const GAUGES = [
  'tollgate_inflight',
  'tollgate_upstream_open',
  'tollgate_relays_open',
  'tollgate_lease_held_usd',
] as const;

export type GatewayGauges = Readonly<Record<(typeof GAUGES)[number], number>>;

export async function readGauges(tollgate: Tollgate): Promise<GatewayGauges> {
  const valueOf = await readMetrics(tollgate.adminUrl);
  return Object.fromEntries(GAUGES.map((name) => [name, valueOf(name)])) as GatewayGauges;
}

/** Waits until no request is open; throws with the gauges that are not 0. */
export async function waitForQuiet(tollgate: Tollgate): Promise<void> {
  await waitFor(
    'nothing to be under way',
    () => readGauges(tollgate),
    (gauges) => GAUGES.every((name) => gauges[name] === 0),
  );
}

const ESTABLISHED = '01';

/**
 * The TCP connections of this machine from or to a port, where both ends of one count once; null: the system does not
 * tell.
 */
export function connectionsAt(port: number): number | null {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  try {
    const lines = readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1);
    const rows = lines.map((line) => line.trim().split(/\s+/));
    return rows.filter(([, local = '', , state]) => local.endsWith(`:${hex}`) && state === ESTABLISHED).length;
  } catch {
    return null;
  }
}
