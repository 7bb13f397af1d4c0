// What is kept of a reply, whatever pieces it came in and whatever other replies are kept meanwhile in the same memory.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { seededRandom } from '../support/byte-splits.ts';

const HEAD_BYTES = 262_144;
const TAIL_BYTES = 32_768;
const SIZES = [
  0, 1, 500, 8_191, 8_192, 8_193, 20_000, 32_768, 65_536, 262_143, 262_144, 262_145, 270_000, 290_000, 295_000, 303_104,
  500_000, 1_000_000,
];

describe('relayed bytes', () => {
  test('many replies at once, in random pieces: beginning, end and what is written are their own', () => {
    const random = seededRandom(20_261_120);
    const below = (limit: number): number => Math.floor(random() * limit);
    for (let round = 0; round < 30; round++) {
      const replies = Array.from({ length: 6 }, () => {
        const whole = Buffer.alloc(SIZES[below(SIZES.length)] as number);
        for (let index = 0; index < whole.length; index++) whole[index] = below(256);
        return {
          whole,
          at: 0,
          kept: new CaptureBuffer(),
          lasting: [] as Buffer[],
          piece: [1 + below(300), 1 + below(9_000), 1 + below(400_000)][below(3)] as number,
        };
      });
      for (let open = replies; open.length > 0; open = open.filter(({ at, whole }) => at < whole.length)) {
        for (const reply of open) {
          const piece = reply.whole.subarray(reply.at, reply.at + reply.piece);
          // As the connection does it: one memory for all reads, which the next one uses again.
          const read = Buffer.from(piece);
          reply.lasting.push(reply.kept.append(read));
          read.fill(0);
          reply.at += reply.piece;
        }
      }
      for (const { whole, kept, lasting, piece } of replies) {
        const name = `${whole.length} in pieces of ${piece}`;
        assert.equal(kept.totalBytes, whole.length);
        assert.ok(Buffer.concat(lasting).equals(whole), name);
        assert.ok(kept.beginning().equals(whole.subarray(0, HEAD_BYTES)), name);
        const end = kept.end();
        assert.ok(end.length >= Math.min(whole.length, TAIL_BYTES), name);
        assert.ok(end.equals(whole.subarray(whole.length - end.length)), name);
        if (whole.length <= HEAD_BYTES) assert.equal(end.length, whole.length, name);
        kept.release();
      }
    }
  });

  test('a short reply lies once: what it is written from is what its usage is read from', () => {
    const kept = new CaptureBuffer();
    const piece = kept.append(Buffer.from('{"usage":{}}'));
    assert.equal(piece.buffer, kept.beginning().buffer);
    assert.equal(piece.byteOffset, kept.beginning().byteOffset);
    kept.release();
  });

  test('what was read of a reply stays as it is until its release, whatever other replies are read meanwhile', () => {
    const keep = (mark: string): CaptureBuffer => {
      const kept = new CaptureBuffer();
      for (let piece = 0; piece < 50; piece++) kept.append(Buffer.alloc(9_000, mark));
      return kept;
    };
    const own = keep('a');
    const [beginning, end] = [own.beginning(), own.end()];
    for (const mark of ['b', 'c', 'd']) {
      const other = keep(mark);
      other.beginning();
      other.end();
      if (mark !== 'd') other.release();
    }
    own.append(Buffer.alloc(9_000, 'e'));
    own.end();
    assert.deepEqual([beginning.length, end.length], [HEAD_BYTES, TAIL_BYTES]);
    assert.ok(beginning.equals(Buffer.alloc(HEAD_BYTES, 'a')));
    assert.ok(end.equals(Buffer.alloc(TAIL_BYTES, 'a')));
    own.release();
  });

  test('nothing is left of one that is released', () => {
    const kept = new CaptureBuffer();
    for (let piece = 0; piece < 50; piece++) kept.append(Buffer.alloc(9_000, 1));
    kept.beginning();
    kept.release();
    assert.equal(kept.beginning().length, 0);
    assert.equal(kept.end().length, 0);
    kept.release();
  });
});

test('a long event that ends with what is kept whole is read, too, where only what follows it lies beyond', () => {
  const event = `data: {"service_tier":"flex","tools":"${'t'.repeat(42_000)}"}`;
  const delta = `data: {"delta":"${'d'.repeat(985)}"}\n\n`;
  const done = '\n\ndata: [DONE]\n\n';
  for (const beyond of [1, 5, done.length - 1, done.length + 1, event.length]) {
    const captured = new CaptureBuffer();
    const before = 262_144 + beyond - done.length - event.length;
    captured.append(Buffer.from(delta.repeat(Math.floor(before / delta.length))));
    captured.append(Buffer.from(`:${' '.repeat((before % delta.length) - 2)}\n`));
    captured.append(Buffer.from(event + done));
    assert.equal(
      captured.longEvent()?.toString(),
      'data: {"service_tier":"flex","tools":null}',
      `${beyond} bytes beyond`,
    );
    captured.release();
  }
});
