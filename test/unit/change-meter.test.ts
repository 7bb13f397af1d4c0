// How fast changes may come: a burst, then one at a time, for a person and for an organization, whatever others do.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangeMeter } from '../../src/control-plane/change-meter.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { principalOf } from '../support/principals.ts';

const person = principalOf('organization', {
  credential: 'token',
  apiKeyId: 'token',
  userId: 'person',
  walletId: null,
  billed: false,
  permissions: [],
});

class Fixture {
  nowMs = 5_000_000;
  readonly meter = new ChangeMeter({ nowMs: () => this.nowMs, monotonicMs: () => this.nowMs }, 60);
  /** How many of so many go ahead. */
  passed(count: number, principal: Principal = person): number {
    return Array.from({ length: count }, () => this.meter.take(principal)).filter((refusal) => refusal === null).length;
  }
}

describe('change meter', () => {
  test('a minute holds as many changes as it says at every fraction of a millisecond', () => {
    for (const nowMs of [9_271.255, 35_908.722, 73_464.233, 5_000_000.1]) {
      const fixture = new Fixture();
      fixture.nowMs = nowMs;
      assert.equal(fixture.passed(61), 60);
    }
  });

  test('a person makes sixty at once, then one a second; what was refused is not counted', () => {
    const fixture = new Fixture();
    assert.equal(fixture.passed(1_337), 60);
    assert.deepEqual(fixture.meter.take(person), { kind: 'too_many_changes', retryAfterMs: 1_000 });
    fixture.nowMs += 999;
    assert.deepEqual(fixture.meter.take(person), { kind: 'too_many_changes', retryAfterMs: 1 });
    fixture.nowMs += 1;
    assert.equal(fixture.passed(10), 1);
    fixture.nowMs += 8_000;
    assert.equal(fixture.passed(1_337), 8);
    fixture.nowMs += 3_600_000;
    assert.equal(fixture.passed(1_337), 60);
  });

  test('all of a person’s credentials and organizations are one person; another person is not kept waiting', () => {
    const fixture = new Fixture();
    assert.equal(fixture.passed(30), 30);
    assert.equal(fixture.passed(60, { ...person, apiKeyId: 'second token', organizationId: 'another' }), 30);
    assert.equal(fixture.passed(60, { ...person, organizationId: null }), 0);
    assert.equal(fixture.passed(60, { ...person, userId: 'other' }), 60);
  });

  test('an organization makes three hundred at once, whoever in it; another organization is not kept waiting', () => {
    const fixture = new Fixture();
    const made = Array.from({ length: 8 }, (_, index) => fixture.passed(50, { ...person, userId: `person ${index}` }));
    assert.deepEqual(made, [50, 50, 50, 50, 50, 50, 0, 0]);
    assert.deepEqual(fixture.meter.take({ ...person, userId: 'person 7' }), {
      kind: 'too_many_changes',
      retryAfterMs: 200,
    });
    assert.equal(
      fixture.passed(60, { ...person, userId: 'person 7', organizationId: 'another' }),
      60,
      'and the refused took nothing from the person',
    );
  });

  test('platform administrators are not metered', () => {
    const fixture = new Fixture();
    assert.equal(fixture.passed(1_337, { ...person, platformAdmin: true }), 1_337);
    assert.equal(fixture.passed(1_337, { ...person, userId: null, organizationId: null, platformAdmin: true }), 1_337);
    assert.equal(fixture.passed(60), 60);
  });

  test('many people, one after another, are each metered for themselves', () => {
    const fixture = new Fixture();
    for (let index = 0; index < 10_000; index += 1) {
      fixture.nowMs += 10;
      assert.equal(
        fixture.passed(1, { ...person, userId: `person ${index}`, organizationId: `organization ${index}` }),
        1,
      );
    }
  });
});
