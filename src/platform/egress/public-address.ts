// Decides which IP addresses are public on the internet, for calls to addresses that customers choose. The metadata
// services of all clouds are not public.

import { BlockList, isIP } from 'node:net';

/**
 * IANA's special-purpose registries, whatever they say of reachability: private and link-local addresses (metadata
 * services among them), prefixes that only wrap an address of the other kind, and those that any network may answer
 * itself (AS112, AMT). Azure's host answers at 168.63.129.16, which looks public.
 */
const NOT_PUBLIC: readonly (readonly [address: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['168.63.129.16', 32],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/**
 * The only block that is allocated. Loopback, private, link-local and mapped addresses and both NAT64 prefixes of
 * 64:ff9b are outside it.
 */
const IPV6_GLOBAL = ['2000::', 3] as const;
/** Teredo, AMT and AS112 are inside 2001::/23; 2002::/16 is 6to4. */
const IPV6_NOT_PUBLIC: readonly (readonly [address: string, prefix: number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
];

/**
 * The ranges as numbers, from and to inclusive: a text may have thousands of addresses, and a BlockList takes
 * microseconds for each.
 */
const NOT_PUBLIC_RANGES = NOT_PUBLIC.map(([address, prefix]) => {
  const size = 2 ** (32 - prefix);
  const from = Math.floor(numberOf(address) / size) * size;
  return [from, from + size - 1] as const;
});
const blocked = new BlockList();
for (const [address, prefix] of IPV6_NOT_PUBLIC) blocked.addSubnet(address, prefix, 'ipv6');
const global6 = new BlockList();
global6.addSubnet(...IPV6_GLOBAL, 'ipv6');

/** The number of an IPv4 address. */
function numberOf(address: string): number {
  return address.split('.').reduce((number, part) => number * 256 + Number(part), 0);
}

/** Whether an address is public; false for a text that is no IP address, too. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) {
    const number = numberOf(address);
    return !NOT_PUBLIC_RANGES.some(([from, to]) => number >= from && number <= to);
  }
  return family === 6 && global6.check(address, 'ipv6') && !blocked.check(address, 'ipv6');
}
