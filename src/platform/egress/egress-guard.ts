// Decides whether a connection may go to an address that a customer chose. It checks three times: before the connection
// is opened if the host is an address, when the host's name is looked up, and when the socket is connected, before its
// first byte. A name may resolve to something else a moment later, so exactly the addresses that were checked are
// dialled.

import type { LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isPublicAddress } from './public-address.ts';

/** What the operator opens in addition to the public internet (EGRESS_ALLOW). */
export interface EgressAllowance {
  /** An address or a network; null: every public address. */
  readonly network: string | null;
  readonly port: number;
}

export interface EgressRules {
  /** Whether public addresses may be called on any port; else only on 443. */
  readonly anyPort: boolean;
  /** Whether private addresses may be called, too. The metadata services of clouds never are. */
  readonly allowPrivate: boolean;
  readonly allowed: readonly EgressAllowance[];
}

const HTTPS_PORT = 443;
/** Metadata services, which tell the machines of a cloud their credentials and what to run. */
const METADATA: readonly (readonly [address: string, prefix: number, family: 'ipv4' | 'ipv6'])[] = [
  ['169.254.169.254', 32, 'ipv4'],
  ['169.254.170.2', 32, 'ipv4'],
  ['169.254.170.23', 32, 'ipv4'],
  ['100.100.100.200', 32, 'ipv4'],
  ['168.63.129.16', 32, 'ipv4'],
  ['fd00:ec2::254', 128, 'ipv6'],
  ['fd00:ec2::23', 128, 'ipv6'],
  ['fd20:ce::254', 128, 'ipv6'],
];
/** The addresses of this machine are looked up again when they are older. */
const OWN_ADDRESSES_MS = 60_000;

/** Why a connection was not made. The message quotes nothing from the customer. */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused';
  readonly code = 'EGRESS_REFUSED';

  constructor() {
    super('it is a loopback, private or reserved address, or on a port that is not open to customers');
  }
}

export class EgressGuard {
  private readonly rules: EgressRules;
  private readonly metadata = new BlockList();
  private readonly allowed: readonly { readonly list: BlockList | null; readonly port: number }[];
  /** This site's own IPv6 prefixes by which it reaches IPv4 (NAT64): private addresses are behind them. */
  private readonly translated = new BlockList();
  private own = new Set<string>();
  private ownAtMs = Number.NEGATIVE_INFINITY;

  constructor(rules: EgressRules) {
    this.rules = rules;
    for (const [address, prefix, family] of METADATA) {
      this.metadata.addSubnet(address, prefix, family);
      if (family === 'ipv4') for (const wrapped of wrappedIn6(address)) this.metadata.addSubnet(...wrapped, 'ipv6');
    }
    this.allowed = rules.allowed.map(({ network, port }) => ({
      port,
      list: network === null ? null : listOf(network),
    }));
  }

  /** Private addresses may be called. */
  get allowsPrivate(): boolean {
    return this.rules.allowPrivate;
  }

  /** Whether a connection to the address and port is allowed; false for a text that is no IP address, too. */
  allows(address: string, port: number): boolean {
    const family = familyOf(address);
    if (family === null || this.metadata.check(address, family) || isMappedMetadata(this.metadata, address))
      return false;
    if (this.allowed.some((entry) => entry.port === port && entry.list?.check(address, family) === true)) return true;
    if (this.rules.allowPrivate) return true;
    const isOpenPort = this.rules.anyPort || port === HTTPS_PORT || this.hasPort(port);
    if (!isOpenPort || !isPublicAddress(address) || this.translated.check(address, family)) return false;
    return !this.isOwn(address);
  }

  /** The `lookup` of a socket: all answers must be allowed, since any of them may be dialled. */
  lookup(inner: LookupFunction, port: number): LookupFunction {
    return (host, options, callback) => {
      inner(host, { ...options, all: true }, (error, found) => {
        const addresses = found as unknown as readonly LookupAddress[];
        if (error !== null) return callback(error, '', 0);
        const [first] = addresses;
        if (first === undefined || !addresses.every(({ address }) => this.allows(address, port)))
          return callback(new EgressRefused(), '', 0);
        if (options.all === true) return callback(null, [...addresses]);
        callback(null, first.address, first.family);
      });
    };
  }

  /** null: the host is a name, or an address that may be called. */
  refusalOfHost(host: string, port: number): EgressRefused | null {
    return isIP(host) === 0 || this.allows(host, port) ? null : new EgressRefused();
  }

  /**
   * Why a URL may not be called, as the rest of a sentence that begins with "it"; null: nothing forbids it that can be
   * seen without looking its name up.
   */
  problemOf(url: string): string | null {
    const { protocol, hostname, port: written } = new URL(url);
    const port = written === '' ? (protocol === 'https:' ? HTTPS_PORT : 80) : Number(written);
    const host = hostname.replace(/^\[|\]$/g, '');
    const meant = /(^|\.)localhost\.?$/i.test(host) ? '127.0.0.1' : host;
    if (this.refusalOfHost(meant, port) === null)
      return isIP(meant) !== 0 || this.mayOpen(port) ? null : 'has a port that is not open to customers';
    return 'must not be a loopback, private or reserved address, or on a port that is not open to customers';
  }

  /**
   * Destroys the socket once it is connected to an address that is not allowed. Must be called before anything is
   * written.
   */
  watch(socket: Socket, port: number): void {
    // This listener must run before the one by which TLS sends its first byte.
    socket.prependOnceListener('connect', () => {
      // Node keeps the address on the object on which it was read. The socket itself must not keep it
      // (upstream/is-reset.ts), so it is read on an object derived from the socket.
      const { remoteAddress = '' } = Object.create(socket) as Socket;
      if (!this.allows(remoteAddress, port)) socket.destroy(new EgressRefused());
    });
  }

  /**
   * `addresses`: the IPv6 addresses that the site's resolver has for an IPv4-only name (RFC 7050). They show the prefix
   * of a translator, behind which are addresses that must not be called.
   */
  learnTranslation(addresses: readonly string[]): void {
    for (const address of addresses) if (isIP(address) === 6) this.translated.addSubnet(address, 96, 'ipv6');
  }

  /** Whether the port may be called at some address at least. */
  private mayOpen(port: number): boolean {
    const { anyPort, allowPrivate } = this.rules;
    return anyPort || allowPrivate || port === HTTPS_PORT || this.allowed.some((entry) => entry.port === port);
  }

  private hasPort(port: number): boolean {
    return this.allowed.some((entry) => entry.list === null && entry.port === port);
  }

  private isOwn(address: string): boolean {
    const nowMs = performance.now();
    if (nowMs - this.ownAtMs > OWN_ADDRESSES_MS) {
      this.own = new Set(
        Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map((one) => one.address)),
      );
      this.ownAtMs = nowMs;
    }
    return this.own.has(address);
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' | null {
  const family = isIP(address);
  return family === 0 ? null : family === 4 ? 'ipv4' : 'ipv6';
}

/** The addresses and networks of IPv6 behind which a translator or a relay reaches an IPv4 address. */
function wrappedIn6(address: string): readonly [address: string, prefix: number][] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  return [
    [`64:ff9b::${hex}`, 128],
    [`::${hex}`, 128],
    [`2002:${hex}::`, 48],
  ];
}

/** An IPv4-mapped IPv6 address (::ffff:a.b.c.d) is that IPv4 address. */
function isMappedMetadata(metadata: BlockList, address: string): boolean {
  const inner = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return inner !== undefined && isIP(inner) === 4 && metadata.check(inner, 'ipv4');
}

function listOf(network: string): BlockList {
  const list = new BlockList();
  const [address = '', prefix] = network.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  list.addSubnet(address, prefix === undefined ? (family === 'ipv4' ? 32 : 128) : Number(prefix), family);
  return list;
}
