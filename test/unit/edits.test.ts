// Edits of a request body: the named bytes change, no other byte does, and the client's own bytes stay as they were.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { jsonModelId } from '../../src/generation/catalog/serving-catalog.ts';
import { applyEdits } from '../../src/generation/request/edits.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { BufferPool } from '../../src/platform/buffer-pool.ts';

describe('edits of a body', () => {
  test('none leave the body as it is, in one piece', () => {
    const body = Buffer.from('{"model":"a"}');
    assert.deepEqual(applyEdits(body, []), [body]);
  });

  test('at the beginning, at the end and of everything leave no empty piece', () => {
    const body = Buffer.from('abc');
    const [x, nothing] = [Buffer.from('x'), Buffer.alloc(0)];
    const sent = (start: number, end: number, replacement: Buffer): string[] =>
      applyEdits(body, [{ start, end, replacement }]).map(String);
    assert.deepEqual(sent(0, 1, x), ['x', 'bc']);
    assert.deepEqual(sent(2, 3, x), ['ab', 'x']);
    assert.deepEqual(sent(0, 3, x), ['x']);
    assert.deepEqual(sent(1, 2, nothing), ['a', 'c']);
    assert.deepEqual(sent(0, 3, nothing), []);
  });

  test('nothing of the body is copied or written over', () => {
    const body = Buffer.from('{"model":"a","b":1}');
    const before = Buffer.from(body);
    const pieces = applyEdits(body, [{ start: 9, end: 12, replacement: jsonModelId('another') }]);
    assert.equal(Buffer.concat(pieces).toString(), '{"model":"another","b":1}');
    assert.deepEqual(body, before);
    for (const [piece, start] of [
      [pieces[0], 0],
      [pieces[2], 12],
    ] as const) {
      assert.equal(piece?.buffer, body.buffer);
      assert.equal(piece?.byteOffset, body.byteOffset + start);
    }
  });

  test('an id is written as JSON', () => {
    assert.equal(jsonModelId('a"b\\é').toString(), '"a\\"b\\\\é"');
  });

  test('bytes outside the values are identical, for any values and places', () => {
    const bytes = fc.uint8Array({ maxLength: 60 });
    fc.assert(
      fc.property(bytes, fc.array(fc.tuple(bytes, bytes, bytes), { maxLength: 4 }), (first, parts) => {
        const body = Buffer.concat([first, ...parts.flatMap(([value, , after]) => [value, after])]);
        const before = Buffer.from(body);
        let at = first.length;
        const edits = parts.map(([value, replacement, after]) => {
          const edit = { start: at, end: at + value.length, replacement: Buffer.from(replacement) };
          at += value.length + after.length;
          return edit;
        });
        const expected = Buffer.concat([first, ...parts.flatMap(([, replacement, after]) => [replacement, after])]);
        assert.deepEqual(Buffer.concat(applyEdits(body, edits)), expected);
        assert.deepEqual(body, before);
      }),
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
          source.copy(pooled.buffer);
          const body = pooled.buffer.subarray(0, source.length);
          const scan = scanner.begin();
          scan.feed(body.subarray(0, cut));
          scan.feed(body.subarray(cut));
          const value = scan.finish(body).valueOf('model');
          assert.ok(value !== null);
          const edit = { start: value.start, end: value.end, replacement: jsonModelId(to) };
          const renamed = `"model" : ${JSON.stringify(to)}`;
          assert.equal(
            Buffer.concat(applyEdits(body, [edit])).toString(),
            modelFirst ? `{${renamed},${rest}}` : `{${rest}, ${renamed} }`,
          );
          assert.ok(body.equals(source));
          pool.release(pooled);
        },
      ),
      { numRuns: 1000 },
    );
    assert.equal(pool.lent, 0);
  });
});
