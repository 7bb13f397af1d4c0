// Caps on connections: of a process, of an address in a span of time, and who is exempt.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Connections } from '../../src/http/connections.ts';

const ZEROS = (count: number): number[] => Array.from({ length: count }, () => 0);
const V4 = (text: string): Uint8Array => Uint8Array.from(text.split('.').map(Number));
const MAPPED = (text: string): Uint8Array => Uint8Array.from([...ZEROS(10), 255, 255, ...V4(text)]);
const V6 = (...bytes: number[]): Uint8Array => Uint8Array.from([...bytes, ...ZEROS(16)].slice(0, 16));

function connections(options: { max?: number; perAddress?: number; trusted?: readonly string[] } = {}): Connections {
  const { max = 1000, perAddress = 3, trusted = [] } = options;
  return new Connections({ connectionsMax: max, connectionsPerAddressMax: perAddress, trustedAddresses: trusted });
}

describe('connections', () => {
  test('an address opens so many in a span of time, however they are written, and others are not concerned', () => {
    const held = connections();
    held.tick(1000);
    const caps = [
      V4('10.0.0.1'),
      MAPPED('10.0.0.1'),
      V4('10.0.0.1'),
      V4('10.0.0.1'),
      MAPPED('10.0.0.1'),
      V4('10.0.0.2'),
    ].map((address) => held.onOpened(address));
    assert.deepEqual(caps, [null, null, null, 'address', 'address', null]);
    held.tick(15_999);
    assert.equal(held.onOpened(V4('10.0.0.1')), 'address');
    held.tick(16_000);
    assert.equal(held.onOpened(V4('10.0.0.1')), null);
  });

  test('IPv6 addresses of one /64 are one', () => {
    const held = connections({ perAddress: 1 });
    assert.equal(held.onOpened(V6(0x20, 1, 0, 0, 0, 0, 0, 1, 9)), null);
    assert.equal(held.onOpened(V6(0x20, 1, 0, 0, 0, 0, 0, 1, 8)), 'address');
    assert.equal(held.onOpened(V6(0x20, 1, 0, 0, 0, 0, 0, 2, 8)), null);
  });

  test('trusted addresses and networks open as many as they like, within the cap of the process', () => {
    const held = connections({ max: 6, perAddress: 1, trusted: ['127.0.0.0/8', '::1', '10.1.0.0/16'] });
    const addresses = [
      V4('127.0.0.1'),
      MAPPED('127.9.9.9'),
      V6(...ZEROS(15), 1),
      V4('10.1.2.3'),
      V4('10.1.2.3'),
      MAPPED('10.1.2.3'),
      V4('127.0.0.1'),
    ];
    assert.deepEqual(
      addresses.map((address) => held.onOpened(address)),
      [null, null, null, null, null, null, 'process'],
    );
  });

  test('what has closed makes room, also what was closed at once; past three quarters none is kept', () => {
    const held = connections({ max: 4, perAddress: 100 });
    for (let opened = 0; opened < 3; opened += 1) assert.equal(held.onOpened(V4('10.0.0.1')), null);
    assert.deepEqual([held.keeps(true), held.keeps(false)], [true, false]);
    assert.equal(held.onOpened(V4('10.0.0.1')), null);
    assert.deepEqual([held.keeps(true), held.keeps(false)], [false, false]);
    assert.equal(held.onOpened(V4('10.0.0.1')), 'process');
    held.onClosed();
    held.onClosed();
    assert.equal(held.onOpened(V4('10.0.0.1')), null);
    assert.equal(held.open, 4);
  });
});
