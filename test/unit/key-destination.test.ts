// Where a stored key of a provider may be sent, by a table: what the key was given for, and what its provider is now.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { destinationOf, otherDestination } from '../../src/domain/models/key-destination.ts';

type Addressed = Parameters<typeof destinationOf>[0];

const GIVEN: Addressed = { baseUrl: 'https://llm.test/v1', auth: 'bearer', requests: null };
const byCa = (ca: string): Partial<Addressed> => ({ requests: { tls: { ca } } });
const byProxy = (proxy: string): Partial<Addressed> => ({ requests: { proxy } });
const PLAIN = { ...GIVEN, baseUrl: 'http://llm.test' };

describe('a key that was given for a provider', () => {
  const rows: readonly [words: string, given: Addressed, now: Partial<Addressed>, other: string | null][] = [
    ['stays with the same', GIVEN, {}, null],
    ['follows another path', GIVEN, { baseUrl: 'https://llm.test/another/v2' }, null],
    ['takes the usual port for what it is', GIVEN, { baseUrl: 'https://LLM.test:443' }, null],
    ['does not go to another host', GIVEN, { baseUrl: 'https://other.test/v1' }, 'another address'],
    ['nor to a host below it', GIVEN, { baseUrl: 'https://a.llm.test/v1' }, 'another address'],
    ['nor to another port', GIVEN, { baseUrl: 'https://llm.test:8443/v1' }, 'another address'],
    ['nor over plain http', GIVEN, { baseUrl: 'http://llm.test/v1' }, 'another address'],
    ['nor in another header', GIVEN, { auth: 'x-api-key' }, 'another header'],
    ['nor where another authority is trusted', GIVEN, byCa('/etc/one.pem'), 'another tls.ca'],
    [
      'nor from one authority to another',
      { ...GIVEN, ...byCa('/etc/one.pem') },
      byCa('/etc/two.pem'),
      'another tls.ca',
    ],
    ['goes where one is trusted no more', { ...GIVEN, ...byCa('/etc/one.pem') }, {}, null],
    ['goes through another proxy, which reads nothing', GIVEN, byProxy('http://proxy.test'), null],
    ['but over plain http', PLAIN, byProxy('http://proxy.test'), 'another proxy'],
    ['also back', { ...PLAIN, ...byProxy('http://proxy.test') }, { requests: null }, 'another proxy'],
  ];
  for (const [words, given, now, other] of rows)
    test(words, () => {
      // As it is stored.
      const stored = JSON.parse(JSON.stringify(destinationOf(given))) as ReturnType<typeof destinationOf>;
      const present = { ...GIVEN, baseUrl: given.baseUrl, ...now };
      assert.equal(otherDestination(stored, destinationOf(present)), other);
    });
});
