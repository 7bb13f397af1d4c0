// Which addresses customers may have us call: a row for each block that is not anybody's, with both of its edges where
// something public is next to it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import ipaddr from 'ipaddr.js';
import { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { isPublicAddress } from '../../src/platform/egress/public-address.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';

const PUBLIC = [
  '93.184.216.34',
  '8.8.8.8',
  '1.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '168.63.129.15',
  '168.63.129.17',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.31.195.255',
  '192.31.197.0',
  '192.175.47.255',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '2001:200::1',
  '2620:4f:7fff::1',
  '2620:4f:8001::1',
];

const NOT_PUBLIC: Readonly<Record<string, readonly string[]>> = {
  'no address': ['', 'x', 'localhost', '1.2.3', '0x7f.0.0.1', '2130706433', '127.1', '8.8.8.8/32', ' 8.8.8.8'],
  'this host': ['0.0.0.0', '0.255.255.255', '::', '::1', '127.0.0.1', '127.255.255.255'],
  'private and shared': [
    '10.0.0.1',
    '100.64.0.1',
    '100.127.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.1',
    'fc00::1',
    'fdff::1',
    'fec0::1',
  ],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'metadata services': [
    '169.254.169.254',
    '169.254.170.2',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd20:ce::254',
  ],
  'documentation, benchmarks and protocol assignments': [
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.1',
    '203.0.113.1',
    '2001:db8::1',
    '3fff::1',
    '5f00::1',
    '100::1',
    '100:0:0:1::1',
  ],
  'AS112 and AMT': ['192.31.196.1', '192.52.193.1', '192.175.48.1', '2001:3::1', '2001:4:112::1', '2620:4f:8000::1'],
  'multicast, reserved and broadcast': ['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', 'ff02::1'],
  'IPv4 mapped and compatible': [
    '::ffff:8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '::ffff:0:8.8.8.8',
    '::8.8.8.8',
  ],
  NAT64: ['64:ff9b::8.8.8.8', '64:ff9b::a9fe:a9fe', '64:ff9b:1::8.8.8.8', '64:ff9b:1:ffff::1'],
  '6to4 and its relays': ['2002:7f00:1::', '2002:808:808::1', '192.88.99.1'],
  Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ORCHID: ['2001:10::1', '2001:20::1'],
};

describe('public addresses', () => {
  test('what is anybody’s', () => {
    for (const address of PUBLIC) assert.equal(isPublicAddress(address), true, address);
  });

  for (const [what, addresses] of Object.entries(NOT_PUBLIC)) {
    test(`not public: ${what}`, () => {
      for (const address of addresses) assert.equal(isPublicAddress(address), false, address);
    });
  }
});

describe('beside ipaddr.js', () => {
  /** Where we are stricter, on purpose: what it calls an address of everybody's. */
  const stricter = (address: string): boolean =>
    NOT_PUBLIC['AS112 and AMT']?.includes(address) === true ||
    address === '168.63.129.16' ||
    // All of IPv6 that is not allocated, with the wrapped forms in it.
    (address.includes(':') && !/^[23][0-9a-f]{3}:/i.test(address));
  const isAnybodys = (address: string): boolean => ipaddr.parse(address).range() === 'unicast';

  test('of many addresses none is public that it knows as special, and none else is refused', () => {
    const random = new SeededRandom(1);
    const group = (): string => random.whole(0, 65_535).toString(16);
    const of4 = (): string => Array.from({ length: 4 }, () => random.whole(0, 255)).join('.');
    const of6 = (first: string): string => [first, ...Array.from({ length: 7 }, group)].join(':');
    const drawn = Array.from({ length: 100_000 }, (_, index) => (index % 2 === 0 ? of4() : of6(group())));
    const allFirst = Array.from({ length: 65_536 }, (_, first) => of6(first.toString(16)));
    const near = ['2001:', '2001:db8:', '2002:', '2620:4f:8000:', '3fff:', '3fff:fff:'].flatMap((prefix) =>
      Array.from(
        { length: 500 },
        () => prefix + Array.from({ length: 8 - prefix.split(':').length + 1 }, group).join(':'),
      ),
    );
    for (const address of [...drawn, ...allFirst, ...near, ...PUBLIC, ...Object.values(NOT_PUBLIC).flat()]) {
      if (!ipaddr.isValid(address) || address.includes('%') || !/^[0-9.]+$|:/.test(address)) continue;
      if (isPublicAddress(address)) assert.equal(isAnybodys(address), true, address);
      else if (!/^\d+(\.\d+){0,2}$/.test(address)) assert.ok(!isAnybodys(address) || stricter(address), address);
    }
  });
});

test('a metadata service is called in no spelling, even where private addresses may be', () => {
  const guard = new EgressGuard({ anyPort: true, allowPrivate: true, allowed: [] });
  for (const address of [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '2002:a9fe:a9fe::1',
    '::a9fe:a9fe',
    'fd00:ec2::254',
    'fd00:ec2:0:0:0:0:0:254',
  ])
    assert.equal(guard.allows(address, 80), false, address);
  assert.equal(guard.allows('10.0.0.1', 80), true);
});
