// The model splice: the value changes, no other byte does, whichever side moves.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { jsonModelId, spliceBody } from '../../src/generation/request/body-splice.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { BufferPool } from '../../src/platform/buffer-pool.ts';

const FILL = 0xaa;

function place(body: string, headroom: number, tailroom: number): Buffer {
  return Buffer.concat([Buffer.alloc(headroom, FILL), Buffer.from(body), Buffer.alloc(tailroom, FILL)]);
}

describe('model splice', () => {
  test('moves the shorter side into its room', () => {
    for (const [before, after] of [
      ['{"model":', `,"x":"${'y'.repeat(50)}"}`],
      [`{"x":"${'y'.repeat(50)}","model":`, '}'],
    ] as const) {
      for (const id of ['m', 'abc', 'provider/a-longer-model-id']) {
        const buffer = place(`${before}"abc"${after}`, 32, 32);
        const end = buffer.length - 32;
        const replacement = jsonModelId(id);
        const spliced = spliceBody({ buffer }, 32, end, before.length, before.length + 5, replacement);
        assert.equal(spliced.buffer, buffer);
        assert.equal(buffer.toString('utf8', spliced.start, spliced.end), `${before}"${id}"${after}`);
        if (before.length < after.length) assert.equal(spliced.end, end);
        else assert.equal(spliced.start, 32);
      }
    }
  });

  test('uses the other side when the shorter has no room, and a fresh buffer when neither has', () => {
    const body = '{"model":"a","b":"cccccccccccccccccccccc"}';
    const expected = body.replace('"a"', '"a-model"');
    const [start, end] = [9, 12];
    const tail = place(body, 2, 20);
    const first = spliceBody({ buffer: tail }, 2, 2 + body.length, start, end, jsonModelId('a-model'));
    assert.equal(first.buffer, tail);
    assert.equal(first.start, 2);
    assert.equal(first.buffer.toString('utf8', first.start, first.end), expected);
    const tight = place(body, 2, 2);
    const second = spliceBody({ buffer: tight }, 2, 2 + body.length, start, end, jsonModelId('a-model'));
    assert.notEqual(second.buffer, tight);
    assert.equal(second.buffer.toString('utf8', second.start, second.end), expected);
    assert.deepEqual(tight, place(body, 2, 2));
  });

  test('an id is written as JSON', () => {
    assert.equal(jsonModelId('a"b\\é').toString(), '"a\\"b\\\\é"');
  });

  test('bytes outside the value are identical, for any value, place and room', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 80 }),
        fc.uint8Array({ maxLength: 80 }),
        fc.uint8Array({ maxLength: 40 }),
        fc.uint8Array({ maxLength: 60 }),
        fc.nat(50),
        fc.nat(50),
        (before, value, after, replacement, headroom, tailroom) => {
          const body = Buffer.concat([before, value, after]);
          const buffer = Buffer.concat([Buffer.alloc(headroom, FILL), body, Buffer.alloc(tailroom, FILL)]);
          const spliced = spliceBody(
            { buffer },
            headroom,
            headroom + body.length,
            before.length,
            before.length + value.length,
            Buffer.from(replacement),
          );
          const result = spliced.buffer.subarray(spliced.start, spliced.end);
          assert.ok(spliced.start >= 0 && spliced.end <= spliced.buffer.length);
          assert.deepEqual(result, Buffer.concat([before, replacement, after]));
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('a scanned body in a pooled buffer, chunk by chunk, leaves with another model and nothing else changed', () => {
    const scanner = new RequestScanner();
    const pool = new BufferPool();
    fc.assert(
      fc.property(
        fc.string({ maxLength: 60 }),
        fc.string({ minLength: 1, maxLength: 400 }),
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.boolean(),
        fc.nat(500),
        (from, to, text, modelFirst, cut) => {
          const model = `"model" : ${JSON.stringify(from)}`;
          const rest = `"messages":[{"role":"user","content":${JSON.stringify(text)}}],"seed":1.0e0`;
          const source = Buffer.from(modelFirst ? `{${model},${rest}}` : `{${rest}, ${model} }`);
          const pooled = pool.acquire(source.length);
          source.copy(pooled.buffer, pooled.bodyStart);
          const body = pooled.buffer.subarray(pooled.bodyStart, pooled.bodyStart + source.length);
          const scan = scanner.begin();
          scan.feed(body.subarray(0, cut));
          scan.feed(body.subarray(cut));
          const value = scan.finish(body).valueOf('model');
          assert.ok(value !== null);
          const spliced = spliceBody(
            pooled,
            pooled.bodyStart,
            pooled.bodyStart + source.length,
            value.start,
            value.end,
            jsonModelId(to),
          );
          const sent = spliced.buffer.toString('utf8', spliced.start, spliced.end);
          const renamed = `"model" : ${JSON.stringify(to)}`;
          assert.equal(sent, modelFirst ? `{${renamed},${rest}}` : `{${rest}, ${renamed} }`);
          pool.release(pooled);
        },
      ),
      { numRuns: 1000 },
    );
    assert.equal(pool.lent, 0);
  });
});
