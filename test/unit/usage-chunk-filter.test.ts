// `stream_usage: request` on a reply: the one chunk that tells the usage is left out, every other byte stays, however
// the stream is split.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UsageChunkFilter } from '../../src/generation/sse/usage-chunk-filter.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';
import { loadRecordedChatExchanges } from '../support/recorded-exchanges.ts';
import { withoutUsageChunks } from '../support/usage-chunks.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);

const USAGE = '{"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}';
const TEXT =
  '{"id":"c","choices":[{"index":0,"delta":{"content":"\\"usage\\":{ \\"choices\\":[] data: [DONE]"}}],"usage":null}';
const DONE = 'data: [DONE]\n\n';

function filterAll(stream: Buffer, split: SplitPlan): string {
  const filter = new UsageChunkFilter();
  const passed = splitBytes(stream, split).map((chunk) => filter.feed(chunk));
  return Buffer.concat([...passed, filter.end()]).toString('latin1');
}

function splitsOf(bytes: number): SplitPlan[] {
  const sizes = [2, 8, 64, 700, 5_000, 70_000].map(
    (bytesMax): SplitPlan => ({ kind: 'random', seed: SEED + bytesMax, bytesMax }),
  );
  return [{ kind: 'whole' }, ...sizes, ...(bytes < 40_000 ? [{ kind: 'each_byte' } as const] : [])];
}

/** In any split, each byte of two pieces included. */
function assertFiltered(stream: string, expected: string): void {
  const bytes = Buffer.from(stream, 'latin1');
  const inTwo =
    bytes.length > 5_000 ? [] : Array.from({ length: bytes.length }, (_, at): SplitPlan => ({ kind: 'two', at }));
  for (const split of [...splitsOf(bytes.length), ...inTwo])
    assert.equal(filterAll(bytes, split), expected, JSON.stringify(split));
}

describe('the usage chunk', () => {
  const streams = loadRecordedChatExchanges().filter(({ stream }) => stream);

  test(`is left out of ${streams.length} recorded streams, and nothing else is (TEST_SEED=${SEED})`, {
    skip: streams.length === 0 && 'no recordings here',
  }, () => {
    let withChunk = 0;
    for (const { name, responseBody } of streams) {
      const expected = withoutUsageChunks(responseBody);
      if (expected.length < responseBody.length) withChunk += 1;
      for (const split of splitsOf(responseBody.length)) {
        assert.ok(filterAll(responseBody, split) === expected.toString('latin1'), `${name}, ${JSON.stringify(split)}`);
      }
    }
    assert.ok(withChunk > 20 && withChunk < streams.length, `${withChunk} streams have the chunk`);
  });

  test('is left out with its blank line, in the line ends of the stream', () => {
    for (const end of ['\n', '\r\n']) {
      const [text, usage, done] = [
        `data: ${TEXT}${end}${end}`,
        `data: ${USAGE}${end}${end}`,
        `data: [DONE]${end}${end}`,
      ];
      assertFiltered(`${text}${usage}${done}`, `${text}${done}`);
      assertFiltered(`${text}${usage}${text}${usage}${done}`, `${text}${text}${done}`);
      assertFiltered(
        `: busy${end}${end}id: 1${end}event: chunk${end}${usage}: ping${end}${text}${done}`,
        `: busy${end}${end}: ping${end}${text}${done}`,
      );
      assertFiltered(`data:${USAGE}${end}${end}${done}`, done);
    }
  });

  test('takes no end of the stream with it', () => {
    assertFiltered(`data: ${USAGE}\n${DONE}`, DONE);
    assertFiltered(`data: ${USAGE}\n\ndata: [DONE]`, 'data: [DONE]');
    // The last line of a stream that ends without one.
    assertFiltered(`data: ${TEXT}\n\ndata: ${USAGE}`, `data: ${TEXT}\n\n`);
    assertFiltered(`data: ${USAGE}\r`, '');
    assertFiltered(`data: ${TEXT}\n\ndata: {"choices":[],"usa`, `data: ${TEXT}\n\ndata: {"choices":[],"usa`);
  });

  test('is no other chunk', () => {
    const others = [
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}',
      'data: {"choices":[],"usage":null}',
      'data: {"choices":[],"prompt_filter_results":[{"usage":{}}]}',
      'data: {"choices":{},"usage":{"prompt_tokens":7}}',
      'data: {"usage":{"prompt_tokens":7}}',
      'data: [{"choices":[],"usage":{}}]',
      'data: {"choices":[],"usage":{"prompt_tokens":7}',
      'database: {"choices":[],"usage":{"prompt_tokens":7}}',
      ': {"choices":[],"usage":{"prompt_tokens":7}}',
      '{"choices":[],"usage":{"prompt_tokens":7}}',
      `data: {"choices":[],"usage":{"prompt_tokens":7},"pad":"${'p'.repeat(20_000)}"}`,
      '\n\r\n\n',
    ];
    for (const line of others) assertFiltered(`${line}\n\n${line}\r\n\r\n${DONE}`, `${line}\n\n${line}\r\n\r\n${DONE}`);
  });

  test('looks at each line once, however many stand before an event that never comes', (context) => {
    const lines = 30_000;
    for (const pieceBytes of [1, 65_536]) {
      const bytes = Buffer.from('a\n'.repeat(pieceBytes === 1 ? lines / 10 : lines));
      const filter = new UsageChunkFilter();
      const lookUps = context.mock.method(Buffer.prototype, 'indexOf');
      let passed = 0;
      for (let at = 0; at < bytes.length; at += pieceBytes)
        passed += filter.feed(bytes.subarray(at, at + pieceBytes)).length;
      const count = lookUps.mock.callCount();
      lookUps.mock.restore();
      assert.equal(passed + filter.end().length, bytes.length);
      assert.ok(count <= 4 * bytes.length, `${count} look-ups in ${bytes.length} bytes`);
    }
  });

  test('never keeps back the end, or a line that is too long to be one', () => {
    const filter = new UsageChunkFilter();
    assert.equal(filter.feed(Buffer.from(`data: ${USAGE}\n\ndata: [`)).toString(), 'data: [');
    assert.equal(filter.feed(Buffer.from('DONE]')).toString(), 'DONE]');
    let passed = new UsageChunkFilter();
    let kept = 0;
    for (let chunk = 0; chunk < 100; chunk++) {
      kept +=
        1_000 - passed.feed(Buffer.from(chunk === 0 ? 'data: {"a":"'.padEnd(1_000, 'x') : 'x'.repeat(1_000))).length;
      assert.ok(kept <= 17_000, `${kept} bytes are kept back`);
    }
    assert.equal(kept, 0);
    passed = new UsageChunkFilter();
    const whole = Buffer.from(`data: ${TEXT}\n\n`);
    assert.equal(passed.feed(whole), whole, 'a chunk of whole events is not copied');
  });
});
