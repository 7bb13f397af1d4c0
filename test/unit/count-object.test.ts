// Usage objects read from their bytes: what is read is what JSON.parse reads, and what is not read is nothing that must
// be refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { learnNames, readCountObject } from '../../src/generation/dialects/count-object.ts';
import { seededRandom } from '../support/byte-splits.ts';

const NAMES = [
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'input_tokens',
  'cached_tokens',
  'audio_tokens',
  'x',
  'details',
  '__proto__x',
  'a.b-c',
];
const VALUES = [
  '0',
  '1',
  '42',
  '999999999999999',
  '1000000000000000',
  '9007199254740993',
  '00',
  '01',
  '-1',
  '-0',
  '1.5',
  '1e3',
  '1e400',
  'null',
  'nul',
  'true',
  '"5"',
  '[]',
  '{}',
  '',
];
const SPACES = ['', '', '', ' ', '\n\t', '\r\n  '];

learnNames(Object.fromEntries(NAMES.map((name) => [name, 1])));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function read(text: string): unknown {
  // Something follows, as in a reply.
  return readCountObject(Buffer.from(`..${text},"more":1}`), 2);
}

describe('count object', () => {
  test('the usual ones are read', () => {
    for (const text of [
      '{"prompt_tokens":250,"completion_tokens":200,"total_tokens":450}',
      '{ "input_tokens" : 1 , "details" : { "cached_tokens" : 0 , "audio_tokens" : null } }',
      '{}',
      '{"details":{}}',
      '{"x":0}',
    ]) {
      assert.deepEqual(read(text), JSON.parse(text), text);
      assert.notEqual(read(text), null, text);
    }
  });

  test('a name that nobody has met is learnt from what JSON.parse read', () => {
    const text = '{"never_met":1,"nor":{"this":2}}';
    assert.equal(read(text), null);
    learnNames(JSON.parse(text) as Record<string, unknown>);
    assert.deepEqual(read(text), JSON.parse(text));
  });

  test('a name that is no plain one is never learnt', () => {
    for (const text of ['{"__proto__":1}', '{"é":1}', '{"":1}', '{"a\\u0062":1}']) {
      learnNames(JSON.parse(text) as Record<string, unknown>);
      assert.equal(read(text), null, text);
    }
  });

  test('cut anywhere: not read', () => {
    const text = '{"prompt_tokens":250,"details":{"cached_tokens":7},"x":null}';
    for (let length = 0; length < text.length; length++)
      assert.equal(readCountObject(Buffer.from(text.slice(0, length)), 0), null, text.slice(0, length));
  });

  test('whatever is read is what JSON.parse reads', () => {
    const random = seededRandom(20_261_120);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const space = () => pick(SPACES);
    const object = (depth: number): string => {
      const members = Array.from({ length: Math.floor(random() * 4) }, () => {
        const value =
          depth < 3 && random() < 0.3
            ? object(depth + 1)
            : random() < 0.7
              ? String(Math.floor(random() * 10_000))
              : pick(VALUES);
        return `${space()}"${pick(NAMES)}"${space()}:${space()}${value}${space()}`;
      });
      return `{${members.length === 0 ? space() : members.join(',')}}`;
    };
    let readCount = 0;
    for (let round = 0; round < 20_000; round++) {
      const whole = object(1);
      const text = random() < 0.2 ? whole.slice(0, Math.floor(random() * whole.length)) : whole;
      const found = read(text);
      if (found === null) continue;
      readCount++;
      assert.deepEqual(found, parsed(text), text);
    }
    assert.ok(readCount > 5_000, `${readCount} were read`);
  });
});
