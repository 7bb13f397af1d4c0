// The name under which a credential is remembered: SipHash-2-4 of 128 bits, of all its characters and of nothing else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SipHash } from '../../src/data-plane/identity/sip-hash/sip-hash.ts';
import { seededRandom } from '../support/byte-splits.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
const SECRET = Uint8Array.from({ length: 16 }, (_, index) => index);

/** Of the authors' reference implementation (vectors_sip128): so many bytes 0, 1, 2 and so on under the secret 0 to 15. */
const VECTORS: readonly (readonly [number, string])[] = [
  [0, 'a3817f04ba25a8e66df67214c7550293'],
  [1, 'da87c1d86b99af44347659119b22fc45'],
  [2, '8177228da4a45dc7fca38bdef60affe4'],
  [7, 'a1f1ebbed8dbc153c0b84aa61ff08239'],
  [8, '3b62a9ba6258f5610f83e264f31497b4'],
  [9, '264499060ad9baabc47f8b02bb6d71ed'],
  [15, '5493e99933b0a8117e08ec0f97cfc3d9'],
  [16, '6ee2a4ca67b054bbfd3315bf85230577'],
  [31, '2939b0183223fafc1723de4f52c43d35'],
  [63, '5150d1772f50834a503e069a973fbd7c'],
];

const hexOf = (units: string | null): string | null => (units === null ? null : Buffer.from(units, 'utf16le').toString('hex'));

test('is what the reference implementation gives', () => {
  const hash = new SipHash(SECRET);
  for (const [bytes, expected] of VECTORS) {
    const text = String.fromCharCode(...Array.from({ length: bytes }, (_, index) => index));
    assert.equal(hexOf(hash.of(text, 0, bytes)), expected, `${bytes} bytes`);
    assert.equal(hexOf(hash.of(`Bearer ${text} `, 7, 7 + bytes)), expected, `${bytes} bytes within a header`);
  }
});

test(`has no other for the same text and no same for another (TEST_SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  const hash = new SipHash();
  const textOf = new Map<string | null, string>();
  for (let round = 0; round < 20_000; round++) {
    const text = Array.from({ length: Math.floor(random() * 80) }, () => String.fromCharCode(0x20 + Math.floor(random() * 2))).join('');
    const name = hash.of(text, 0, text.length);
    assert.equal(name?.length, 8);
    assert.equal(textOf.get(name) ?? text, text);
    textOf.set(name, text);
    assert.equal(hash.of(`${text}x`, 0, text.length), name);
  }
  assert.ok(textOf.size > 10_000);
});

test('is another under another secret', () => {
  assert.notEqual(new SipHash().of('key', 0, 3), new SipHash().of('key', 0, 3));
});

test('is none for what is too long, or is not ASCII', () => {
  const hash = new SipHash();
  assert.notEqual(hash.of('k'.repeat(256), 0, 256), null);
  assert.equal(hash.of('k'.repeat(257), 0, 257), null);
  // Half of the first one's code is a letter's.
  for (const character of ['\u0141', '\x80', '\xff', '\ud83d']) assert.equal(hash.of(`k${character}`, 0, 2), null);
});
