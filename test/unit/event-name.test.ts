// The name of an event by its line: whatever stands where in its data and however the bytes are split, it is what a
// client that parses the data sees.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EventName } from '../../src/generation/sse/event-name.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';

function nameOf(line: string, split: SplitPlan | null = null): string | null {
  const bytes = Buffer.from(line);
  const reader = new EventName();
  const pieces = split === null ? [bytes] : splitBytes(bytes, split);
  reader.begin();
  const names = pieces.map((piece, index) => reader.take(piece, index === pieces.length - 1));
  const told = names.filter((name) => name !== null);
  assert.ok(told.length <= 1, 'a line has one name');
  return told[0] ?? null;
}

function assertName(line: string, expected: string | null): void {
  assert.equal(nameOf(line), expected, line);
  assert.equal(nameOf(line, { kind: 'each_byte' }), expected, `${line}, byte by byte`);
  for (let at = 1; at < Buffer.byteLength(line); at++)
    assert.equal(nameOf(line, { kind: 'two', at }), expected, `${line}, in two at ${at}`);
}

describe('the name of an event', () => {
  const ROWS: readonly (readonly [string, string | null])[] = [
    ['event: a.completed', 'a.completed'],
    ['event:a.completed\r', 'a.completed'],
    ['event: a.completed not', 'a.completed not'],
    ['event:', null],
    ['events: a', null],
    ['data: [DONE]', '[DONE]'],
    ['data:[DONE]\r', '[DONE]'],
    ['data: [DON', null],
    ['data: ["type","a"]', null],
    ['data: "type"', null],
    ['data:', null],
    ['dat', null],
    ['id: {"type":"a"}', null],
    [': {"type":"a"}', null],
    ['data: {"type":"a"}', 'a'],
    ['data: {"type":"a', null],
    ['data: {"n":1,"type":"a"}', 'a'],
    ['data: {"b64_json":"AAAA","type":"a"}', 'a'],
    ['data: {"b64_json":"AAAA","type":"a","usage":{"type":"b"}}', 'a'],
    ['data: {"usage":{"type":"b"},"list":[{"type":"c"}],"type":"a"}', 'a'],
    ['data:\t{ "x" : "y" ,\t"type" : "a" }\r', 'a'],
    ['data: {"type":null,"x":"b"}', null],
    ['data: {"type":{"type":"b"},"x":"c"}', null],
    ['data: {"type":["b"],"x":"c"}', null],
    ['data: {"x":"type","y":"b"}', null],
    ['data: {"x":"\\"type\\":\\"b\\"","type":"a"}', 'a'],
    ['data: {"x":"\\\\","type":"a"}', 'a'],
    ['data: {"x":"\\\\\\"","type":"a"}', 'a'],
    ['data: {"typed":"b","ty":"c","xtype":"d","Type":"e"}', null],
    ['data: {"\\u0074ype":"a"}', 'a'],
    ['data: {"\\u0074\\u0079\\u0070\\u0065":"a\\u002Eb"}', 'a.b'],
    ['data: {"\\u0074\\u0079\\u0070\\u0065s":"a"}', null],
    ['data: {"\\u0075ype":"b","type":"a"}', 'a'],
    // A client that parses it takes the last; the first is what can be told while it passes.
    ['data: {"type":"a","type":"b"}', 'a'],
    ['data: {"x":1}{"type":"b"}', null],
    [`data: {"type":"${'a'.repeat(300)}"}`, null],
    [`event: ${'a'.repeat(300)}`, null],
  ];
  for (const [line, expected] of ROWS) test(line.slice(0, 80), () => assertName(line, expected));

  test('is the type that a parser finds, in any order of keys and any split', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('type', '"type":"x"', '\\', '\\"', '{"type":"x"}', 't'.repeat(400), '\\u0074ype'),
    );
    const value = fc.oneof(text, fc.jsonValue(), fc.constant({ type: 'x' }), fc.constant([{ type: 'x' }]));
    const members = fc.dictionary(fc.oneof(text, fc.string({ maxLength: 6 })), value, { maxKeys: 8 });
    fc.assert(
      fc.property(members, fc.boolean(), members, fc.nat(), (before, hasType, after, seed) => {
        const entries = [...Object.entries(before), ...Object.entries(after)].filter(([key]) => key !== 'type');
        const places = hasType ? seed % (entries.length + 1) : -1;
        if (hasType) entries.splice(places, 0, ['type', 'image.completed']);
        const data = `{${entries.map(([key, of]) => `${JSON.stringify(key)}:${JSON.stringify(of)}`).join(',')}}`;
        assert.equal((JSON.parse(data) as { type?: unknown }).type, hasType ? 'image.completed' : undefined);
        const expected = hasType ? 'image.completed' : null;
        assert.equal(nameOf(`data: ${data}`), expected);
        assert.equal(nameOf(`data: ${data}`, { kind: 'random', seed, bytesMax: 24 }), expected);
        assert.equal(nameOf(`data: ${data}`, { kind: 'each_byte' }), expected);
      }),
      { numRuns: 500 },
    );
  });

  test('is read of one reader for line after line, wherever one broke off', () => {
    const reader = new EventName();
    for (const broken of [
      'da',
      'event: a',
      'data: {"type":"a',
      'data: {"x":{"type":"b',
      'data: {"x\\',
      'data: {"type":',
    ]) {
      reader.begin();
      assert.equal(reader.take(Buffer.from(broken), false), null, broken);
      reader.begin();
      assert.equal(reader.take(Buffer.from('data: {"x":"y","type":"a"}'), true), 'a', `behind ${broken}`);
    }
  });

  // Minutes, were what has passed looked at again.
  test('of a long line takes time by their number, whatever they are and however small the pieces', () => {
    for (const unit of ['"', '\\"', '{', '"type":', '"\\u0074":1,', '"type":{"a":"b"},', '\\', 'x', '"t","a":']) {
      const line = Buffer.from(`data: {"a":"${unit.repeat(Math.ceil(300_000 / unit.length))}`);
      for (const bytes of [1, 65_536]) {
        const reader = new EventName();
        reader.begin();
        for (let at = 0; at < line.length; at += bytes) reader.take(line.subarray(at, at + bytes), false);
      }
    }
  });
});
