// The histogram of a load: its percentiles beside those of the sorted values, and its bytes beside those of another
// HdrHistogram library.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { Histogram } from '../../src/load/histogram.ts';
import { renderHistogramLog } from '../../src/load/histogram-log.ts';

const HEADER_BYTES = 40;
const VALUES = [0, 1, 1, 7, 2_047, 2_048, 5_000, 123_456, 1_000_000, 1_000_000, 59_999_999, 3_600_000_000];
/** The counts of VALUES as hdr-histogram-js 3.0.1 encodes them, with the same bounds and digits. */
const COUNTS_OF_VALUES = '02040902ed1f0202c11302cb4a02ad3004895e02975e02';

test('percentiles are those of the sorted values, to three digits', () => {
  const histogram = new Histogram();
  // Multiplicative congruence: the same values in each run, over seven powers of ten.
  let state = 12_345;
  const values = Array.from({ length: 20_000 }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return Math.round(10 ** ((state / 2_147_483_647) * 7));
  });
  for (const value of values) histogram.record(value);
  values.sort((one, other) => one - other);
  for (const percent of [1, 10, 50, 90, 99, 99.9, 99.99, 100]) {
    const exact = values[Math.ceil((percent / 100) * values.length) - 1] ?? Number.NaN;
    const found = histogram.percentileUs(percent);
    assert.ok(found >= exact && found <= exact * 1.001 + 1, `p${percent}: ${found}, exactly ${exact}`);
  }
  assert.equal(histogram.maxUs, values.at(-1));
  assert.equal(histogram.count, values.length);
});

test('values beyond an hour and below zero are kept as its bounds; an empty histogram has zeros', () => {
  const histogram = new Histogram();
  assert.deepEqual([histogram.percentileUs(99), histogram.meanUs, histogram.maxUs], [0, 0, 0]);
  histogram.record(-5);
  histogram.record(9e12);
  assert.equal(histogram.percentileUs(50), 0);
  assert.equal(histogram.maxUs, 3_600_000_000);
});

test('the encoding is version 2 of HdrHistogram', () => {
  const histogram = new Histogram();
  for (const value of VALUES) histogram.record(value);
  const encoded = histogram.encode();
  assert.equal(encoded.readInt32BE(0), 0x1c849314);
  assert.equal(encoded.readInt32BE(4), encoded.length - 8);
  const bytes = inflateSync(encoded.subarray(8));
  assert.equal(bytes.readInt32BE(0), 0x1c849313);
  assert.equal(bytes.readInt32BE(4), bytes.length - HEADER_BYTES);
  assert.equal(bytes.readInt32BE(12), 3);
  assert.deepEqual([bytes.readBigInt64BE(16), bytes.readBigInt64BE(24)], [1n, 3_600_000_000n]);
  assert.equal(bytes.readDoubleBE(32), 1);
  assert.equal(bytes.subarray(HEADER_BYTES).toString('hex'), COUNTS_OF_VALUES);
});

test('a log has a tagged line for each histogram', () => {
  const histogram = new Histogram();
  histogram.record(2_500);
  const log = renderHistogramLog(1_700_000_000_123, 60_000, { request_latency: histogram });
  const lines = log.trimEnd().split('\n');
  assert.equal(lines[1], '#[Histogram log format version 1.3]');
  assert.match(lines[2] ?? '', /^#\[StartTime: 1700000000\.123 \(seconds since epoch\), 2023-11-14T22:13:20\.123Z\]$/);
  assert.equal(lines.at(-1), `Tag=request_latency,0.000,60.000,2.500,${histogram.encode().toString('base64')}`);
});
