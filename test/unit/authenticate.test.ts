// Authentication from memory and store: what is remembered, for how long, and that a failing store never yields a
// principal.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { principalOf } from '../support/principals.ts';

const principal = principalOf('o', { apiKeyId: 'k', walletId: 'w' });

class Fixture {
  nowMs = 1_000;
  asked = 0;
  answer: Principal | null | Error = principal;
  hold: Promise<void> = Promise.resolve();
  /** In the place of `answer`. */
  find: ((credential: string) => Principal | null) | null = null;
  readonly credentials: string[] = [];
  readonly authenticator = new Authenticator(
    async (credential) => {
      this.asked += 1;
      this.credentials.push(credential);
      const answer = this.find === null ? this.answer : this.find(credential);
      await this.hold;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs },
  );
  ask(authorization = 'Bearer tg-good') {
    return this.authenticator.authenticateKey(authorization, null);
  }
}

describe('authenticate', () => {
  for (const authorization of ['', 'Bearer', 'Bearer ', 'Basic abc', 'tg-good', 'Bearertg-good']) {
    test(`${JSON.stringify(authorization)} presents no credential`, async () => {
      const fixture = new Fixture();
      assert.deepEqual(await fixture.ask(authorization), { kind: 'authentication_required' });
      assert.equal(fixture.asked, 0);
    });
  }

  test('x-api-key counts where there is no Authorization, and only there', async () => {
    const fixture = new Fixture();
    assert.equal(await fixture.authenticator.authenticateKey('', 'tg-good'), principal);
    assert.deepEqual(await fixture.authenticator.authenticateKey('', ''), {
      kind: 'authentication_required',
    });
    assert.deepEqual(await fixture.authenticator.authenticateKey('Basic abc', 'tg-good'), {
      kind: 'authentication_required',
    });
  });

  test('the scheme is case-insensitive', async () =>
    assert.equal(await new Fixture().ask('bearer tg-good'), principal));

  test('a known credential is answered from memory, without a promise', async () => {
    const fixture = new Fixture();
    assert.equal(await fixture.ask(), principal);
    assert.equal(fixture.ask(), principal);
    assert.equal(fixture.asked, 1);
  });

  test('many requests at once ask once', async () => {
    const fixture = new Fixture();
    await Promise.all(Array.from({ length: 50 }, async () => fixture.ask()));
    assert.equal(fixture.asked, 1);
  });

  test('a prefix, a longer one and another case of a known credential are other credentials', async () => {
    const fixture = new Fixture();
    await fixture.ask();
    fixture.answer = null;
    for (const other of ['Bearer tg-goo', 'Bearer tg-good1', 'Bearer TG-GOOD', 'Bearer tg-goodtg-good']) {
      assert.deepEqual(await fixture.ask(other), { kind: 'unauthorized' });
    }
  });

  test('a failing store never yields a principal, and is asked again', async () => {
    const fixture = new Fixture();
    fixture.answer = new Error('away');
    assert.deepEqual(await fixture.ask(), { kind: 'authorization_unavailable' });
    fixture.answer = principal;
    fixture.nowMs += 250;
    assert.equal(await fixture.ask(), principal);
  });

  test('who is remembered goes on while the store is away, for an hour; nobody else is let in', async () => {
    const fixture = new Fixture();
    await fixture.ask();
    fixture.answer = new Error('away');
    fixture.nowMs += 31_000;
    assert.equal(await fixture.ask(), principal);
    assert.equal(fixture.ask(), principal, 'without waiting, once it is known to be away');
    assert.deepEqual(await fixture.ask('Bearer tg-other'), { kind: 'authorization_unavailable' });
    fixture.nowMs += 3_560_000;
    assert.equal(fixture.ask(), principal);
    await new Promise(setImmediate);
    fixture.nowMs += 30_000;
    assert.deepEqual(await fixture.ask(), { kind: 'authorization_unavailable' });
  });

  test('while the store is away it is asked now and then, and its answer counts at once when it is back', async () => {
    const fixture = new Fixture();
    await fixture.ask();
    fixture.answer = new Error('away');
    fixture.nowMs += 31_000;
    await fixture.ask();
    for (let round = 0; round < 100; round += 1) {
      fixture.nowMs += 100;
      await Promise.all([fixture.ask(), fixture.ask('Bearer tg-other'), fixture.ask('Bearer tg-third')]);
    }
    await new Promise(setImmediate);
    assert.ok(fixture.asked <= 40, `asked ${fixture.asked} times`);
    fixture.answer = null;
    fixture.nowMs += 1_100;
    await fixture.ask();
    await new Promise(setImmediate);
    assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' }, 'revoked meanwhile');
  });

  test('whoever was forgotten after a change is not let in while the store is away', async () => {
    const fixture = new Fixture();
    await fixture.ask();
    fixture.answer = new Error('away');
    fixture.authenticator.forgetAll();
    assert.deepEqual(await fixture.ask(), { kind: 'authorization_unavailable' });
  });

  test(
    'after changes may have been missed everybody is asked for again, ' + 'and nobody is turned away for it',
    async () => {
      const fixture = new Fixture();
      await fixture.ask();
      fixture.answer = new Error('away');
      fixture.nowMs += 31_000;
      await fixture.ask();
      fixture.authenticator.markAllUncertain();
      assert.equal(await fixture.ask(), principal, 'still away after all');
      fixture.answer = null;
      fixture.authenticator.markAllUncertain();
      assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' }, 'revoked meanwhile');
      fixture.answer = principal;
      assert.equal(await fixture.ask('Bearer tg-other'), principal, 'who was never known is asked for at once');
    },
  );

  test('a store that does not answer is away', async () => {
    const fixture = new Fixture();
    let release = () => {};
    fixture.hold = new Promise((resolve) => (release = resolve));
    assert.deepEqual(await fixture.ask(), { kind: 'authorization_unavailable' });
    release();
    await new Promise(setImmediate);
    assert.equal(fixture.ask(), principal, 'an answer that came late is an answer');
  });

  test('what is remembered is asked again after half a minute, and after a change at once', async () => {
    const fixture = new Fixture();
    await fixture.ask();
    fixture.answer = null;
    fixture.authenticator.forgetAll();
    assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' });
    fixture.answer = principal;
    await fixture.ask();
    fixture.answer = null;
    fixture.nowMs += 31_000;
    assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' });
  });

  test('an answer that was under way during a change is not remembered', async () => {
    const fixture = new Fixture();
    let release = () => {};
    fixture.hold = new Promise((resolve) => (release = resolve));
    const asking = fixture.ask();
    fixture.authenticator.forgetAll();
    release();
    await asking;
    fixture.answer = null;
    assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' });
  });

  test('an expired key is refused although it is remembered', async () => {
    const fixture = new Fixture();
    fixture.answer = { ...principal, expiresAtMs: 2_000 };
    await fixture.ask();
    fixture.nowMs = 2_000;
    assert.deepEqual(await fixture.ask(), { kind: 'unauthorized' });
  });

  test('a permission that the principal lacks', async () => {
    const fixture = new Fixture();
    fixture.answer = { ...principal, permissions: ['usage.read'] };
    assert.deepEqual(await fixture.ask(), { kind: 'permission_denied' });
  });

  test('a token is identified, but may not generate', async () => {
    const fixture = new Fixture();
    const roaming: Principal = { ...principal, credential: 'token', organizationId: null, permissions: [] };
    fixture.answer = roaming;
    assert.deepEqual(await fixture.ask(), { kind: 'permission_denied' });
    assert.equal(fixture.authenticator.identify('Bearer tg-good', null), roaming);
  });

  test('nothing longer than a key can be is looked up', async () => {
    const fixture = new Fixture();
    assert.deepEqual(await fixture.ask(`Bearer ${'x'.repeat(4_097)}`), { kind: 'unauthorized' });
    assert.equal(fixture.asked, 0);
    assert.equal(await fixture.ask(`Bearer ${'x'.repeat(4_096)}`), principal);
  });

  test('a change of one id makes those with it asked for again, and nobody else', async () => {
    const fixture = new Fixture();
    const found: Readonly<Record<string, Principal>> = {
      'tg-first': { ...principal, apiKeyId: 'first', userId: 'user', teamId: 'team' },
      'tg-second': { ...principal, apiKeyId: 'second' },
      'tg-other': { ...principal, apiKeyId: 'other', organizationId: 'elsewhere' },
      'tgt-token': {
        ...principal,
        credential: 'token',
        apiKeyId: 'token',
        userId: 'user',
        teamPermissions: new Map([['team', 'owner']]),
      },
    };
    fixture.find = (credential) => found[credential] ?? null;
    const askedAfter = async (id: string): Promise<string[]> => {
      for (const credential of Object.keys(found)) await fixture.ask(`Bearer ${credential}`);
      fixture.credentials.length = 0;
      fixture.authenticator.forget(id);
      for (const credential of Object.keys(found)) await fixture.ask(`Bearer ${credential}`);
      return [...fixture.credentials];
    };
    assert.deepEqual(await askedAfter('first'), ['tg-first']);
    assert.deepEqual(await askedAfter('user'), ['tg-first', 'tgt-token']);
    assert.deepEqual(await askedAfter('team'), ['tg-first', 'tgt-token']);
    assert.deepEqual(await askedAfter('o'), ['tg-first', 'tg-second', 'tgt-token']);
    assert.deepEqual(await askedAfter('elsewhere'), ['tg-other']);
    assert.deepEqual(await askedAfter('nobody'), []);
  });

  test(
    'an answer that was under way during a change is remembered when the change is somebody else’s, and ' +
      'not when it is its own',
    async () => {
      for (const [id, isRemembered] of [
        ['another', true],
        ['o', false],
        ['k', false],
      ] as const) {
        const fixture = new Fixture();
        let release = () => {};
        fixture.hold = new Promise((resolve) => (release = resolve));
        const asking = fixture.ask();
        fixture.authenticator.forget(id);
        release();
        assert.equal(await asking, principal);
        fixture.answer = null;
        assert.deepEqual(await fixture.ask(), isRemembered ? principal : { kind: 'unauthorized' }, id);
      }
    },
  );

  test('who comes after a change does not share an answer that was asked for before it', async () => {
    const fixture = new Fixture();
    let release = () => {};
    fixture.hold = new Promise((resolve) => (release = resolve));
    const early = fixture.ask();
    fixture.answer = null;
    fixture.authenticator.forget('k');
    const late = fixture.ask();
    release();
    assert.equal(await early, principal);
    assert.deepEqual(await late, { kind: 'unauthorized' });
    assert.deepEqual(
      await fixture.ask(),
      { kind: 'unauthorized' },
      'and what was asked for before it is not remembered',
    );
  });

  test('a session that is looked up: never from memory, nor by an answer that was under way before', async () => {
    const fixture = new Fixture();
    const [secret, moved] = ['tgs-good', principalOf('elsewhere')];
    assert.equal(await fixture.authenticator.identifySession(secret), principal);
    fixture.nowMs += 30_000;
    let release = () => {};
    fixture.hold = new Promise((resolve) => (release = resolve));
    const early = fixture.authenticator.identifySession(secret);
    fixture.answer = moved;
    const late = [fixture.authenticator.lookUpSession(secret), fixture.authenticator.lookUpSession(secret)];
    release();
    assert.deepEqual(await Promise.all([early, ...late]), [principal, moved, moved]);
    assert.equal(fixture.asked, 3, 'the two share one');
    assert.equal(await fixture.authenticator.identifySession(secret), moved);
    fixture.answer = new Error('away');
    assert.equal(await fixture.authenticator.lookUpSession(secret), moved, 'who is known is let in');
    assert.deepEqual(await fixture.authenticator.lookUpSession('tgt-good'), { kind: 'unauthorized' });
  });

  test(
    'a flood of unknown credentials: two look-ups at a time, two hundred wait, the others are refused; ' +
      'who is known is asked for beside it',
    async () => {
      const fixture = new Fixture();
      await fixture.ask();
      fixture.authenticator.forget('k');
      let release = () => {};
      fixture.hold = new Promise((resolve) => (release = resolve));
      fixture.find = (credential) => (credential === 'tg-good' ? principal : null);
      const before = fixture.asked;
      const flood = Array.from({ length: 1_000 }, async (_, index) => fixture.ask(`Bearer nobody-${index}`));
      const known = fixture.ask();
      assert.deepEqual(fixture.credentials.slice(before), ['nobody-0', 'nobody-1', 'tg-good']);
      fixture.hold = Promise.resolve();
      release();
      assert.equal(await known, principal);
      const answers = await Promise.all(flood);
      assert.equal(answers.filter((answer) => 'kind' in answer && answer.kind === 'unauthorized').length, 202);
      assert.equal(
        answers.filter((answer) => 'kind' in answer && answer.kind === 'authorization_unavailable').length,
        798,
      );
      assert.equal(fixture.asked - before, 203);
      assert.deepEqual(await fixture.ask('Bearer nobody-999'), { kind: 'unauthorized' }, 'and room is made again');
    },
  );
});
