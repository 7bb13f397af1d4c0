// Look-ups of providers' names: few at once, remembered for a while, and a resolver that fails or hangs.

import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { connect, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { NameLookups, type Resolve } from '../../src/upstream/http1/name-lookups.ts';
import { HeldClock } from '../support/upstream-calls.ts';

interface Question {
  readonly host: string;
  answer(error: Error | null, address?: string): void;
}

/** A resolver that answers when the test says so, and how many questions it had. */
function heldResolver(lookupsMax?: number): {
  readonly names: NameLookups;
  readonly clock: HeldClock;
  readonly questions: Question[];
  open: () => number;
} {
  const questions: Question[] = [];
  let open = 0;
  const resolve: Resolve = (host, _, callback) => {
    open += 1;
    questions.push({
      host,
      answer: (error, address) => {
        open -= 1;
        callback(error, address === undefined ? [] : [{ address, family: 4 }]);
      },
    });
  };
  const clock = new HeldClock();
  return { names: new NameLookups(clock, resolve, lookupsMax), clock, questions, open: () => open };
}

const ask = (names: NameLookups, host: string): Promise<string> =>
  new Promise((resolve) => {
    let returned = false;
    names.lookup(host, { all: true }, (error, addresses) => {
      assert.ok(returned, 'told before the call returned');
      resolve(error === null ? (addresses as LookupAddress[]).map(({ address }) => address).join() : error.message);
    });
    returned = true;
  });

describe('name look-ups', () => {
  test('one for a name at a time; its answer serves all who wait, and others for five seconds', async () => {
    const { names, clock, questions } = heldResolver();
    const waiting = Array.from({ length: 20 }, () => ask(names, 'a.test'));
    assert.equal(questions.length, 1);
    questions[0]?.answer(null, '192.0.2.1');
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['192.0.2.1']));
    clock.timeMs += 4_999;
    assert.equal(await ask(names, 'a.test'), '192.0.2.1');
    assert.equal(questions.length, 1);
    clock.timeMs += 1;
    const again = ask(names, 'a.test');
    assert.equal(questions.length, 2);
    questions[1]?.answer(null, '192.0.2.2');
    assert.equal(await again, '192.0.2.2');
  });

  test('two names at once, however many hang; the others follow in order', async () => {
    const { names, questions, open } = heldResolver();
    const waiting = ['a', 'b', 'c', 'd', 'c'].map((host) => ask(names, `${host}.test`));
    assert.deepEqual([questions.map(({ host }) => host), open()], [['a.test', 'b.test'], 2]);
    questions[1]?.answer(null, '192.0.2.2');
    assert.deepEqual([questions.length, open()], [3, 2]);
    questions[2]?.answer(null, '192.0.2.3');
    questions[3]?.answer(null, '192.0.2.4');
    questions[0]?.answer(null, '192.0.2.1');
    assert.deepEqual(await Promise.all(waiting), ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.3']);
    assert.equal(questions.length, 4);
  });

  test(
    'where the resolver fails, the last answer serves for ten minutes; a name never answered fails, and ' +
      'is asked for again',
    async () => {
      const { names, clock, questions } = heldResolver();
      const first = ask(names, 'a.test');
      questions[0]?.answer(null, '192.0.2.1');
      await first;
      for (const [afterMs, expected] of [
        [599_999, '192.0.2.1'],
        [1, 'EAI_AGAIN'],
      ] as const) {
        clock.timeMs += afterMs;
        const told = ask(names, 'a.test');
        questions.at(-1)?.answer(new Error('EAI_AGAIN'));
        assert.equal(await told, expected);
      }
      for (let round = 0; round < 2; round++) {
        const before = questions.length;
        const told = ask(names, 'new.test');
        assert.equal(questions.length, before + 1);
        questions.at(-1)?.answer(new Error('ENOTFOUND'));
        assert.equal(await told, 'ENOTFOUND');
      }
    },
  );

  test('where the resolver hangs, the last answer serves too, and nothing more is asked', async () => {
    const { names, clock, questions, open } = heldResolver();
    const first = ask(names, 'a.test');
    questions[0]?.answer(null, '192.0.2.1');
    await first;
    clock.timeMs += 60_000;
    // The resolver has the question and never answers.
    assert.deepEqual(await Promise.all([ask(names, 'a.test'), ask(names, 'a.test')]), ['192.0.2.1', '192.0.2.1']);
    assert.equal(await ask(names, 'a.test'), '192.0.2.1');
    assert.deepEqual([questions.length, open()], [2, 1]);
    questions[1]?.answer(null, '192.0.2.9');
    assert.equal(await ask(names, 'a.test'), '192.0.2.9');
  });

  test('names that hang, however many, take from no name in use the answer that it has', async () => {
    const { names, clock, questions } = heldResolver(20_000);
    const first = ask(names, 'a.test');
    questions[0]?.answer(null, '192.0.2.1');
    await first;
    for (let flood = 0; flood < 4; flood++) {
      for (let at = 0; at < 4_000; at++) void ask(names, `hanging-${flood}-${at}.test`);
      clock.timeMs += 1_000;
      assert.equal(await ask(names, 'a.test'), '192.0.2.1');
    }
    clock.timeMs += 60_000;
    assert.equal(await ask(names, 'a.test'), '192.0.2.1');
    for (const question of questions.slice(1)) question.answer(null, '192.0.2.2');
  });

  test('a socket connects by it, to the address that listens', async () => {
    const server = createServer((socket) => socket.end('hello'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const both: Resolve = (_, __, callback) =>
      callback(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
      ]);
    for (const names of [new NameLookups(new HeldClock(), both), new NameLookups(new HeldClock())]) {
      for (const autoSelectFamily of [true, false]) {
        // Without happy eyeballs the first address alone is tried, and nobody listens there.
        const text = await new Promise<string>((resolve) => {
          const socket = connect({ host: 'localhost', port, lookup: names.lookup, autoSelectFamily });
          socket.once('data', (data) => resolve(data.toString()));
          socket.once('error', () => resolve('refused'));
        });
        if (autoSelectFamily) assert.equal(text, 'hello');
      }
    }
    await new Promise((resolve) => server.close(resolve));
  });
});
