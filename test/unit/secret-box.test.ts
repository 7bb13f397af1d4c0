// Stored secrets: what opens them, what does not, and how they move to another master key.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { createSecretBox, keyIdOf } from '../../src/storage/postgres/secret-box.ts';
import { firstFormat } from '../support/first-format-secret.ts';

const [ONE, TWO] = [randomBytes(32), randomBytes(32)];
const SECRET = 'sk-planted-mark';
const NAME = 'own key of-acme openai id 1';

describe('a sealed secret', () => {
  const box = createSecretBox({ current: ONE, previous: [] });

  test('opens for its own record, and holds nothing in clear', () => {
    const sealed = box.seal(SECRET, NAME);
    assert.equal(box.open(sealed, NAME), SECRET);
    assert.equal(sealed.includes(SECRET), false);
    assert.equal(box.open(box.seal('', NAME), NAME), '');
  });

  test('does not open for another organization, kind, record or generation', () => {
    const sealed = box.seal(SECRET, NAME);
    for (const other of ['own key of-other openai id 1', 'own key of-acme azure id 1', `${NAME}1`, ''])
      assert.throws(() => box.open(sealed, other), /is damaged/);
  });

  test('does not open when any of its bits is another', () => {
    const sealed = box.seal(SECRET, NAME);
    for (let at = 0; at < sealed.length; at += 1) {
      for (const bit of [1, 128]) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ bit;
        assert.throws(() => box.open(changed, NAME), /is damaged|another MASTER_KEY/, `byte ${at}`);
      }
    }
  });

  test('does not open when it is cut, empty, or of a format to come', () => {
    const sealed = box.seal(SECRET, NAME);
    for (let length = 0; length < sealed.length; length += 1)
      assert.throws(() => box.open(sealed.subarray(0, length), NAME), /is damaged/);
    assert.throws(() => box.open(Buffer.concat([Buffer.of(3), sealed.subarray(1)]), NAME), /is damaged/);
  });

  test('of the first format still opens, and is given a data key when it is wrapped again', () => {
    const first = firstFormat(ONE, SECRET, NAME);
    assert.equal(box.open(first, NAME), SECRET);
    assert.throws(() => box.open(first, `${NAME}x`), /is damaged/);
    const moved = box.rewrap(first, NAME);
    assert.ok(moved !== null);
    assert.equal(moved[0], 2);
    assert.equal(box.open(moved, NAME), SECRET);
  });

  test('two of the same secret have nothing in common but their head', () => {
    const [one, other] = [box.seal(SECRET, NAME), box.seal(SECRET, NAME)];
    assert.deepEqual(one.subarray(0, 9), other.subarray(0, 9));
    for (let at = 9; at + 8 <= one.length; at += 8)
      assert.equal(other.includes(one.subarray(at, at + 8)), false, `bytes from ${at}`);
  });
});

describe('another master key', () => {
  const before = createSecretBox({ current: ONE, previous: [] });
  const both = createSecretBox({ current: TWO, previous: [ONE] });
  const after = createSecretBox({ current: TWO, previous: [] });

  test('opens nothing of the one before it, unless that one is given too', () => {
    const sealed = before.seal(SECRET, NAME);
    assert.throws(() => after.open(sealed, NAME), /another MASTER_KEY/);
    assert.equal(both.open(sealed, NAME), SECRET);
  });

  test('opens what was wrapped again, whose content is the same bytes', () => {
    const sealed = before.seal(SECRET, NAME);
    const moved = both.rewrap(sealed, NAME);
    assert.ok(moved !== null);
    assert.equal(keyIdOf(moved), both.keyId);
    assert.equal(after.open(moved, NAME), SECRET);
    assert.throws(() => before.open(moved, NAME), /another MASTER_KEY/);
    assert.throws(() => after.open(moved, `${NAME}x`), /is damaged/);
    assert.deepEqual(moved.subarray(69), sealed.subarray(69));
    assert.equal(both.rewrap(moved, NAME), null);
  });

  test('is not put over a data key that is damaged', () => {
    const sealed = before.seal(SECRET, NAME);
    sealed[68] = (sealed[68] ?? 0) ^ 1;
    assert.throws(() => both.rewrap(sealed, NAME), /is damaged/);
    assert.throws(() => both.rewrap(before.seal(SECRET, NAME), `${NAME}x`), /is damaged/);
    const first = firstFormat(ONE, SECRET, NAME);
    first[first.length - 1] = (first.at(-1) ?? 0) ^ 1;
    assert.throws(() => both.rewrap(first, NAME), /is damaged/);
  });

  test('moves a secret without opening it: what is damaged in it stays so', () => {
    const sealed = before.seal(SECRET, NAME);
    sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
    const moved = both.rewrap(sealed, NAME);
    assert.ok(moved !== null);
    assert.throws(() => after.open(moved, NAME), /is damaged/);
  });
});
