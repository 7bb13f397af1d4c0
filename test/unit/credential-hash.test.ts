// A credential is good as a whole or not at all: nothing near a valid one, and nothing random, has its hash.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { createBootstrapCheck } from '../../src/domain/identity/bootstrap-administrator.ts';
import { generateKey, generateToken } from '../../src/domain/identity/generate-credential.ts';
import { derivePepper, hashCredential, keyPrefix } from '../../src/domain/identity/key-hash.ts';
import { howMany } from '../support/at-length.ts';

const VALID_COUNT = 50;
const RANDOM_COUNT = howMany({ short: 100_000, long: 1_000_000 });
const pepper = derivePepper(randomBytes(32));
const valid = Array.from({ length: VALID_COUNT }, (_, index) => (index % 2 === 0 ? generateKey() : generateToken()));
const known = new Set(valid.map((credential) => hashCredential(pepper, credential).toString('base64')));
const isAccepted = (credential: string): boolean => known.has(hashCredential(pepper, credential).toString('base64'));

/** Every near miss of a credential. */
function* nearMisses(credential: string, other: string): Generator<string> {
  for (let length = 0; length < credential.length; length += 1) {
    yield credential.slice(0, length);
    yield credential.slice(credential.length - length);
  }
  for (let index = 0; index < credential.length; index += 1) {
    const character = credential.charAt(index);
    const swapped = character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
    for (const replacement of [swapped, character === 'A' ? 'B' : 'A', '']) {
      const changed = credential.slice(0, index) + replacement + credential.slice(index + 1);
      if (changed !== credential) yield changed;
    }
  }
  yield* [
    credential.toUpperCase(),
    credential.toLowerCase(),
    ` ${credential}`,
    `${credential} `,
    `${credential}\0`,
    `${credential}=`,
    credential.slice(3),
  ];
  yield* [
    credential + other,
    other + credential,
    credential + credential,
    `${credential},${other}`,
    keyPrefix(credential),
  ];
}

describe('credentials', () => {
  test('are 43 characters of 256 random bits behind their prefix', () => {
    for (const [index, credential] of valid.entries()) {
      assert.match(credential, index % 2 === 0 ? /^tg-[\w-]{43}$/ : /^tgt-[\w-]{43}$/);
      assert.equal(Buffer.from(credential.slice(credential.indexOf('-') + 1), 'base64url').length, 32);
    }
    assert.equal(known.size, VALID_COUNT);
  });

  test('every valid one is accepted; no prefix, suffix, case change, other character or concatenation is', () => {
    const accepted: string[] = [];
    for (const [index, credential] of valid.entries()) {
      assert.ok(isAccepted(credential));
      const other = valid[(index + 1) % valid.length] ?? '';
      for (const miss of nearMisses(credential, other)) if (isAccepted(miss)) accepted.push(miss);
    }
    assert.deepEqual(accepted, []);
  });

  test(`${RANDOM_COUNT} random ones: none is accepted`, () => {
    let accepted = 0;
    const bytes = randomBytes(RANDOM_COUNT * 32);
    for (let index = 0; index < RANDOM_COUNT; index += 1) {
      if (isAccepted(`tg-${bytes.toString('base64url', index * 32, index * 32 + 32)}`)) accepted += 1;
    }
    assert.equal(accepted, 0);
  });

  test('a shown prefix tells less than a third of a credential', () => {
    for (const credential of valid) assert.ok(keyPrefix(credential).length <= 10);
    assert.equal(keyPrefix('short'), 's');
  });

  test('the bootstrap administrator is the holder of the whole ADMIN_TOKEN, and nobody without the setting', () => {
    const token = 'Admin-Token-of-forty-characters-and-more';
    const check = createBootstrapCheck(pepper, token);
    const found = check(hashCredential(pepper, token));
    assert.ok(found?.platformAdmin);
    assert.deepEqual([found.organizationId, found.permissions, found.credential], [null, ['platform.admin'], 'token']);
    for (const miss of nearMisses(token, 'other')) assert.equal(check(hashCredential(pepper, miss)), null);
    assert.equal(createBootstrapCheck(pepper, null)(hashCredential(pepper, '')), null);
    assert.equal(createBootstrapCheck(pepper, null)(hashCredential(pepper, 'null')), null);
  });
});
