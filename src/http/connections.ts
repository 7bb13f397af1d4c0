// Counts the connections of a process, and tells which new ones must be closed because there are too many, in all or
// from one address.
//
// uWebSockets.js does not say whose connection has closed (the address is gone by then), so an address is limited by
// the connections that it opens in a span of time, and not by those that it has open. The span is the longest time for
// which a connection without a request stays open, so an address has at most twice its limit of idle connections.
//
// When more than KEPT_PART_UNIDENTIFIED of all connections are open, a response to a request without a good credential
// ends its connection; above KEPT_PART_IDENTIFIED every response does. So nobody holds connections for ever by sending
// a request now and then, and clients without a key cannot take the part that is left for those with one.

import { BlockList, isIPv6 } from 'node:net';

export interface ConnectionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  /** Addresses, or networks as `10.0.0.0/8`, for which only `connectionsMax` holds: proxies in front of the gateway. */
  readonly trustedAddresses: readonly string[];
}

/** uWebSockets.js closes a connection that brings no whole head in 10 seconds, which it counts in steps of four. */
const OPENING_SPAN_MS = 15_000;
/** Addresses remembered in one span; beyond them the count begins again. */
const ADDRESSES_MAX = 100_000;
/** Parts of `connectionsMax` up to which a connection is kept for another request. */
const KEPT_PART_IDENTIFIED = 0.75;
const KEPT_PART_UNIDENTIFIED = 0.25;

/** Which cap is reached. */
export type ConnectionCap = 'process' | 'address';

export class Connections {
  private readonly limits: ConnectionLimits;
  private readonly trusted = new BlockList();
  /** By address, or by the /64 network of an IPv6 one: what it has opened in this span. */
  private readonly opened = new Map<string, number>();
  private spanEndMs = 0;
  /** Open now. */
  open = 0;

  constructor(limits: ConnectionLimits) {
    this.limits = limits;
    for (const entry of limits.trustedAddresses) addTo(this.trusted, entry);
  }

  /**
   * Returns the cap for which the new connection must be closed, or null. A connection that is closed for a cap counts
   * until `onClosed`, too. `address`: four bytes, or sixteen.
   */
  onOpened(address: Uint8Array): ConnectionCap | null {
    this.open += 1;
    if (this.open > this.limits.connectionsMax) return 'process';
    if (this.trusted.check(...textOf(address))) return null;
    const key = keyOf(address);
    const opened = this.opened.get(key) ?? 0;
    if (this.opened.size >= ADDRESSES_MAX) this.opened.clear();
    this.opened.set(key, opened + 1);
    return opened >= this.limits.connectionsPerAddressMax ? 'address' : null;
  }

  /**
   * Where a connection comes from: its address or network or, behind a trusted proxy, the address that the proxy saw.
   */
  sourceOf(address: Uint8Array, forwardedFor: string | null): string {
    if (forwardedFor === null || !this.trusted.check(...textOf(address))) return keyOf(address);
    return forwardedFor.slice(forwardedFor.lastIndexOf(',') + 1).trim();
  }

  onClosed(): void {
    this.open -= 1;
  }

  /** Whether a connection is kept for another request; `isKnown`: a good credential came with this one. */
  keeps(isKnown: boolean): boolean {
    return this.open <= this.limits.connectionsMax * (isKnown ? KEPT_PART_IDENTIFIED : KEPT_PART_UNIDENTIFIED);
  }

  tick(nowMs: number): void {
    if (nowMs < this.spanEndMs) return;
    this.spanEndMs = nowMs + OPENING_SPAN_MS;
    this.opened.clear();
  }
}

function addTo(list: BlockList, entry: string): void {
  const [address = '', prefix] = entry.split('/');
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  if (prefix === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(prefix), family);
}

const MAPPED_BYTES = 12;
const NETWORK_BYTES = 8;

/** IPv4 within IPv6: ten bytes of zero, two of 255. */
function isMapped(address: Uint8Array): boolean {
  return (
    address.length === 16 &&
    address[10] === 0xff &&
    address[11] === 0xff &&
    address.subarray(0, 10).every((byte) => byte === 0)
  );
}

function keyOf(address: Uint8Array): string {
  if (address.length !== 16) return address.join('.');
  return isMapped(address) ? address.subarray(MAPPED_BYTES).join('.') : address.subarray(0, NETWORK_BYTES).join(':');
}

function textOf(address: Uint8Array): [string, 'ipv4' | 'ipv6'] {
  if (address.length !== 16) return [address.join('.'), 'ipv4'];
  if (isMapped(address)) return [address.subarray(MAPPED_BYTES).join('.'), 'ipv4'];
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((address[index * 2] as number) << 8) | (address[index * 2 + 1] as number)).toString(16),
  );
  return [groups.join(':'), 'ipv6'];
}
