// The list of open relays: every one once, in any order of leaving.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type OpenRelay, OpenRelays } from '../../src/generation/reply/open-relays.ts';

class Counted implements OpenRelay {
  openIndex = -1;
  looks = 0;
  checkTime(): void {
    this.looks += 1;
  }
  onOwnFault(fault: unknown): void {
    assert.fail(String(fault));
  }
}

test('whatever comes and goes, a look sees each open one once', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), (steps) => {
      const list = new OpenRelays();
      const open: Counted[] = [];
      for (const step of steps) {
        const leaving = open[step];
        if (leaving === undefined) {
          const relay = new Counted();
          list.add(relay);
          open.push(relay);
        } else {
          list.remove(leaving);
          open.splice(step, 1);
        }
      }
      list.checkTime(0);
      assert.equal(list.size, open.length);
      assert.ok(open.every((relay) => relay.looks === 1));
    }),
  );
});

test('a relay that ends while it is looked at does not hide another', () => {
  const list = new OpenRelays();
  const seen: number[] = [];
  for (let number = 0; number < 5; number += 1) {
    const relay: OpenRelay = {
      openIndex: -1,
      checkTime() {
        seen.push(number);
        list.remove(relay);
      },
      onOwnFault: (fault) => assert.fail(String(fault)),
    };
    list.add(relay);
  }
  list.checkTime(0);
  assert.deepEqual(
    seen.toSorted((one, other) => one - other),
    [0, 1, 2, 3, 4],
  );
  assert.equal(list.size, 0);
});

test('a relay whose look throws ends, and hides no other', () => {
  const list = new OpenRelays();
  const fault = new Error('of ours');
  const heard: unknown[] = [];
  const first = new Counted();
  const faulty: OpenRelay = {
    openIndex: -1,
    checkTime: () => {
      throw fault;
    },
    onOwnFault: (thrown) => {
      heard.push(thrown);
      list.remove(faulty);
    },
  };
  list.add(first);
  list.add(faulty);
  list.checkTime(0);
  assert.deepEqual([heard, first.looks, list.size], [[fault], 1, 1]);
});
