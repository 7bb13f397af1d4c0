// Cooldowns of provider-models: begun by Retry-After, for whom, ended by time, and what is left when every deployment
// has one.

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { ProviderToken } from '../../src/domain/models/provider.ts';
import type { Deployment } from '../../src/generation/catalog/serving-catalog.ts';
import { Cooldowns } from '../../src/generation/pauses/cooldowns.ts';
import { HeaderLines } from '../../src/upstream/http1/request-head.ts';
import { HeldClock } from '../support/upstream-calls.ts';

const deployment = (id: string, providerModel: string, token?: ProviderToken): Deployment => ({
  provider: {
    ...(token === undefined ? {} : { token }),
    id,
    baseUrl: 'http://127.0.0.1',
    apiKey: 'k',
    auth: 'bearer',
    onDisconnect: 'cancel',
  },
  origin: `http://${id}.test`,
  providerModel,
  modelJson: Buffer.from('""'),
  modelText: Buffer.from(''),
  insteadOfModel: null,
  price: null,
  asksForUsage: false,
  credential: new HeaderLines([]),
});
const first = deployment('a', 'm');
const second = deployment('b', 'm');
const otherModel = deployment('a', 'n');

describe('cooldowns', () => {
  test('a deployment in cooldown is passed over, the others of the same provider are not', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '3', { monotonicMs: 1_000, wallClockMs: 0 });
    assert.deepEqual(cooldowns.filter([first, second], 'acme', 1_000), [second]);
    assert.deepEqual(cooldowns.filter([first, otherModel], 'acme', 3_999), [otherModel]);
    assert.deepEqual(cooldowns.filter([first, second], 'acme', 4_000), [first, second]);
  });

  test('when every deployment has one, the shortest wait is told', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '30', { monotonicMs: 0, wallClockMs: 0 });
    cooldowns.begin(second, 'acme', '2', { monotonicMs: 0, wallClockMs: 0 });
    assert.deepEqual(cooldowns.filter([first, second], 'acme', 500), {
      kind: 'upstream_cooldown',
      retryAfterMs: 1_500,
    });
  });

  test('a date is read against the wall clock', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', 'Fri, 20 Nov 2026 14:00:05 GMT', {
      monotonicMs: 0,
      wallClockMs: Date.parse('Fri, 20 Nov 2026 14:00:00 GMT'),
    });
    assert.deepEqual(cooldowns.filter([first], 'acme', 4_999), { kind: 'upstream_cooldown', retryAfterMs: 1 });
    assert.deepEqual(cooldowns.filter([first], 'acme', 5_000), [first]);
  });

  for (const value of [null, '', 'soon', '0', '-3', 'Fri, 20 Nov 2020 14:00:00 GMT']) {
    test(`${JSON.stringify(value)} begins none`, () => {
      const cooldowns = new Cooldowns();
      cooldowns.begin(first, 'acme', value, { monotonicMs: 0, wallClockMs: Date.parse('2026-11-20') });
      assert.equal(cooldowns.size, 0);
    });
  }

  test('an hour is cut to ten minutes, a shorter one does not end a longer one, ended ones are forgotten', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '3600', { monotonicMs: 0, wallClockMs: 0 });
    cooldowns.begin(first, 'acme', '1', { monotonicMs: 0, wallClockMs: 0 });
    assert.deepEqual(cooldowns.filter([first], 'acme', 599_999), { kind: 'upstream_cooldown', retryAfterMs: 1 });
    cooldowns.forgetEnded(600_000);
    assert.equal(cooldowns.size, 0);
  });
});

describe('a cooldown is for', () => {
  const at = (seconds: number) => ({ monotonicMs: seconds * 1_000, wallClockMs: 0 });
  const waits = (cooldowns: Cooldowns, organization: string, seconds: number): number => {
    const deployments = cooldowns.filter([first], organization, seconds * 1_000);
    return 'kind' in deployments && deployments.kind === 'upstream_cooldown'
      ? Math.round((deployments.retryAfterMs ?? 0) / 1_000)
      : 0;
  };

  test('the organization whose request was refused, up to ten minutes, however often', () => {
    const cooldowns = new Cooldowns();
    for (const second of [0, 1, 2]) cooldowns.begin(first, 'acme', '3600', at(second));
    assert.deepEqual([waits(cooldowns, 'acme', 2), waits(cooldowns, 'other', 2)], [600, 0]);
  });

  test('everybody, a minute at most at a time, once a second organization is refused while the first one waits', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '300', at(0));
    cooldowns.begin(first, 'other', '300', at(10));
    const waiting = (second: number): number[] =>
      ['acme', 'other', 'third'].map((name) => waits(cooldowns, name, second));
    assert.deepEqual(waiting(10), [290, 300, 60]);
    assert.deepEqual(waiting(70), [230, 240, 0]);
    // A third one is refused while they wait: everybody again.
    cooldowns.begin(first, 'third', '20', at(80));
    assert.equal(waits(cooldowns, 'fourth', 80), 20);
  });

  test('everybody until one that met no refusal has been let through and served: two organizations of one person pause nothing for long', () => {
    const cooldowns = new Cooldowns();
    const waiting = (second: number): number[] =>
      ['third', 'fourth', 'acme'].map((name) => waits(cooldowns, name, second));
    cooldowns.begin(first, 'acme', '60', at(0));
    cooldowns.begin(first, 'other', '60', at(0));
    assert.deepEqual(waiting(1), [59, 59, 59]);
    // One at a time finds out, with as many requests as it makes meanwhile.
    assert.deepEqual([...waiting(2), waits(cooldowns, 'third', 3)], [0, 58, 58, 0]);
    cooldowns.begin(first, 'third', '60', at(3));
    assert.deepEqual(
      ['third', 'fourth', 'fifth'].map((name) => waits(cooldowns, name, 4)),
      [59, 0, 59],
    );
    cooldowns.called(first, 'third', 200);
    assert.deepEqual(waiting(4), [59, 0, 56]);
    assert.equal(waits(cooldowns, 'fifth', 4), 0);
  });

  test('each alone where the second is refused after the first has waited', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '5', at(0));
    cooldowns.begin(first, 'other', '5', at(5));
    assert.deepEqual(
      ['acme', 'other', 'third'].map((name) => waits(cooldowns, name, 5)),
      [0, 5, 0],
    );
  });

  test('one provider’s model: two organizations at two models pause neither for all', () => {
    const cooldowns = new Cooldowns();
    cooldowns.begin(first, 'acme', '60', at(0));
    cooldowns.begin(otherModel, 'other', '60', at(0));
    assert.deepEqual(cooldowns.filter([first, otherModel], 'third', 0), [first, otherModel]);
  });

  test('as many as are kept: the oldest is forgotten, and none grows without end', () => {
    const cooldowns = new Cooldowns();
    for (let count = 0; count < 11_000; count += 1)
      cooldowns.begin(deployment('a', `m${count}`), `o${count}`, '60', at(0));
    assert.equal(cooldowns.size, 10_000);
  });
});

describe('addresses that fail', () => {
  const clock = new HeldClock();
  const REGIONS = [deployment('eu', 'm'), deployment('us', 'm')] as const;
  const [eu, us] = REGIONS;
  let cooldowns: Cooldowns;
  const open = (organization = 'acme') => {
    const found = cooldowns.filter(REGIONS, organization, clock.timeMs);
    return 'kind' in found ? found.kind : found.map(({ provider }) => provider.id).join(' ');
  };
  const fail = (times: number, status: number | null, organization = 'acme', of: Deployment = eu) => {
    for (let count = 0; count < times; count += 1) cooldowns.called(of, organization, status);
  };
  beforeEach(() => {
    clock.timeMs = 1_000;
    cooldowns = new Cooldowns(clock);
  });

  for (const status of [null, 500, 503, 529]) {
    test(`three with ${status ?? 'no connection'}: passed over for two seconds`, () => {
      fail(2, status);
      assert.equal(open(), 'eu us');
      fail(1, status);
      assert.equal(open(), 'us');
      clock.timeMs += 1_999;
      assert.equal(open(), 'us');
      clock.timeMs += 1;
      assert.equal(open(), 'eu us');
    });
  }

  test('a failure right after the pause doubles it, up to thirty seconds; an answer ends the row', () => {
    fail(3, null);
    for (const seconds of [2, 4, 8, 16, 30, 30]) {
      clock.timeMs += seconds * 1_000 - 1;
      assert.equal(open(), 'us', `${seconds}`);
      clock.timeMs += 1;
      assert.equal(open(), 'eu us', `${seconds}`);
      fail(5, 500);
    }
    clock.timeMs += 30_000;
    fail(1, 404);
    fail(2, 500);
    assert.equal(open(), 'eu us');
  });

  test('a failure long after a pause begins to count anew', () => {
    fail(3, null);
    clock.timeMs += 60_000;
    fail(2, null);
    assert.equal(open(), 'eu us');
  });

  test('three with an answer between, or within more than ten seconds, pause nothing', () => {
    fail(2, 500);
    fail(1, 200);
    fail(2, 500);
    assert.equal(open(), 'eu us');
    clock.timeMs += 10_001;
    fail(2, 500);
    assert.equal(open(), 'eu us');
  });

  for (const status of [200, 400, 401, 404, 429]) {
    test(`${status} is an answer of the address`, () => {
      fail(20, status);
      assert.equal(open(), 'eu us');
    });
  }

  test('one organization pauses it for itself alone; a second one for all, until it answers', () => {
    fail(3, 500);
    assert.deepEqual([open('acme'), open('other')], ['us', 'eu us']);
    fail(3, 500, 'other');
    assert.deepEqual([open('other'), open('third')], ['us', 'us']);
    fail(1, 200, 'other');
    assert.equal(open('third'), 'eu us');
  });

  test('it is the address that is passed over, and all of its models with it', () => {
    fail(3, 500, 'acme', deployment('eu', 'another'));
    assert.equal(open(), 'us');
  });

  test('where all fail all are tried, and where the others are in cooldown it is tried as well', () => {
    fail(3, null);
    fail(3, null, 'acme', us);
    assert.equal(open(), 'eu us');
    cooldowns.begin(us, 'acme', '5', { monotonicMs: clock.timeMs, wallClockMs: 0 });
    assert.equal(open(), 'eu');
  });

  test('a provider without a valid token is passed over; where there is no other, that is a refusal', () => {
    const late = deployment('late', 'm', { validUntilMs: 5_000, overdueFromMs: 4_000 });
    const none = deployment('none', 'm', { validUntilMs: 0, overdueFromMs: 0 });
    clock.timeMs = 4_999;
    assert.deepEqual(cooldowns.filter([none, late, us], 'acme', 0), [late, us]);
    clock.timeMs = 5_000;
    assert.deepEqual(cooldowns.filter([none, late, us], 'acme', 0), [us]);
    assert.deepEqual(cooldowns.filter([none, late], 'acme', 0), { kind: 'provider_unavailable' });
  });
});

describe('an address that fails for own keys', () => {
  const ofKey = (keyId: string): Deployment => {
    return { ...first, provider: { ...first.provider, own: { keyId, isGuarded: false } } };
  };
  const failing = (keys: readonly (readonly [organizationId: string, deployment: Deployment])[]): Cooldowns => {
    const cooldowns = new Cooldowns(new HeldClock());
    for (const [organizationId, deployment] of keys)
      for (let times = 0; times < 3; times += 1) cooldowns.called(deployment, organizationId, 500);
    return cooldowns;
  };

  test('is passed over for that key alone: not for another organization’s, nor for the service', () => {
    const cooldowns = failing([
      ['acme', ofKey('k1')],
      ['other', ofKey('k2')],
    ]);
    assert.deepEqual(cooldowns.filter([ofKey('k1'), second], 'acme', 1_000), [second]);
    assert.deepEqual(cooldowns.filter([ofKey('k3'), second], 'third', 1_000), [ofKey('k3'), second]);
    assert.deepEqual(cooldowns.filter([first, second], 'third', 1_000), [first, second]);
    // What an organization's key meets is not shown to the operator.
    assert.deepEqual(cooldowns.list(1_000), []);
  });

  test('of the service is not passed over for own keys', () => {
    const cooldowns = failing([
      ['acme', first],
      ['other', first],
    ]);
    assert.deepEqual(cooldowns.filter([first, second], 'third', 1_000), [second]);
    assert.deepEqual(cooldowns.filter([ofKey('k3'), second], 'third', 1_000), [ofKey('k3'), second]);
  });
});
