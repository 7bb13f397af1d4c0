// Reads addresses and networks as operators write them.

import { isIPv4, isIPv6 } from 'node:net';
import type { EgressAllowance } from './egress-guard.ts';

/** An IP address, or a network as `10.0.0.0/8`. */
export function isNetwork(entry: string): boolean {
  const [address = '', prefix, ...more] = entry.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1;
  return (
    more.length === 0 && bits > 0 && (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits))
  );
}

/** `10.2.0.0/16:8000`, `[fd00::/8]:8000`; `:8443` is that port of every public address. */
export function readAllowance(entry: string): EgressAllowance | null {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:./]+)\]|([0-9./]*)):([1-9][0-9]{0,4})$/.exec(entry) ?? [];
  const network = bracketed ?? plain;
  if (network === undefined || Number(port) > 65_535 || (network !== '' && !isNetwork(network))) return null;
  return { network: network === '' ? null : network, port: Number(port) };
}
