// Records in a frame of the spool: what is written is read back, whatever any field of the table holds, and what this
// version does not know is refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ExecutionRecord } from '../../src/records/execution-record.ts';
import type { Kind } from '../../src/records/field-types.ts';
import { FIELD_ROWS, USAGE_ROWS } from '../../src/records/fields.ts';
import { FRAME_RECORDS, RecordBatch } from '../../src/records/record-batch.ts';
import { decodeFrame } from '../../src/records/record-codec.ts';
import { admittedRecord, executionStart, terminalRecord } from '../support/execution-records.ts';
import { frameTexts, putRecord, textsOf } from '../support/spool-records.ts';

/** Any string, halves of surrogate pairs and control characters too. */
const anyText = fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) });
const count = fc.option(fc.nat());
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
);
const route = fc.record({
  requested: anyText,
  reason: anyText,
  cached: fc.boolean(),
  rejected: fc.array(fc.record({ model: anyText })),
});

const VALUES: Readonly<Record<Kind, fc.Arbitrary<unknown>>> = {
  uuid: fc.uuid(),
  uuids: fc.array(fc.uuid()),
  text: anyText,
  texts: fc.array(anyText),
  flag: fc.boolean(),
  status: fc.integer({ min: 100, max: 599 }),
  bytes: fc.maxSafeInteger(),
  instant: fc.integer({ min: 0, max: 8_640_000_000_000_000 }),
  duration: number,
  amount: fc.bigInt({ min: 0n, max: 2n ** 120n }).map(String),
  usage: fc.record(Object.fromEntries(USAGE_ROWS.map(([name]) => [name, count]))),
  details: fc.record({ service_tier: anyText, cache_write_1h_tokens: fc.nat() }),
  screening: fc.record({ input: fc.record({ action: fc.constant('none') }) }),
  failures: fc.array(fc.record({ credential_id: fc.uuid(), reason: anyText, status: fc.option(fc.nat()) })),
  attempts: fc.array(fc.record({ provider: anyText, started_ms: fc.nat(), ended_ms: fc.option(fc.nat()) })),
  route,
};

/** Few callers, deployments and endings, so that records share them, and every optional field now there, now not. */
function recordsOf(): fc.Arbitrary<ExecutionRecord[]> {
  const fields = FIELD_ROWS.map(([name, { type, part, isOptional }]) => {
    const value = type.isNullable ? fc.option(VALUES[type.kind]) : VALUES[type.kind];
    const isShared = part === 'caller' || part === 'deployment' || part === 'ending';
    return {
      name,
      part,
      isOptional,
      value: isShared ? fc.array(value, { minLength: 2, maxLength: 2 }) : value,
      isShared,
    };
  });
  const model = Object.fromEntries(fields.filter(({ isShared }) => isShared).map(({ name, value }) => [name, value]));
  const own = Object.fromEntries(
    fields
      .filter(({ isShared }) => !isShared)
      .map(({ name, value, isOptional }) => [name, isOptional ? fc.option(value, { nil: undefined }) : value]),
  );
  const one = fc.record({ own: fc.record(own), which: fc.nat(1), isTerminal: fc.boolean() });
  return fc.tuple(fc.record(model), fc.array(one, { minLength: 1, maxLength: 60 })).map(([shared, ones]) =>
    ones.map(({ own: values, which, isTerminal }) => {
      const entries = fields
        .filter(({ part }) => isTerminal || (part !== 'ending' && part !== 'end'))
        .map(({ name, isShared }) => [name, isShared ? (shared[name] as unknown[])[which] : values[name]] as const);
      return {
        type: isTerminal ? 'terminal' : 'admitted',
        ...Object.fromEntries(entries),
      } as unknown as ExecutionRecord;
    }),
  );
}

/** As a record is read: an optional field without a value is not there. */
function asRead(record: ExecutionRecord): Record<string, unknown> {
  const optional = new Set<string>(FIELD_ROWS.filter(([, field]) => field.isOptional).map(([name]) => name));
  const isThere = ([name, value]: [string, unknown]): boolean =>
    !optional.has(name) || !(value == null || value === false || (Array.isArray(value) && value.length === 0));
  return Object.fromEntries(Object.entries(record).filter(isThere));
}

function readBatch(batch: RecordBatch): ExecutionRecord[] {
  return textsOf(batch).flatMap((text) => decodeFrame(JSON.parse(text)) ?? assert.fail(text));
}

function batchOf(...records: readonly ExecutionRecord[]): RecordBatch {
  const batch = new RecordBatch();
  for (const record of records) putRecord(batch, record);
  return batch;
}

describe('records in frames', () => {
  test('what is written is read back, over all fields', () => {
    fc.assert(
      fc.property(recordsOf(), (records) => {
        assert.deepEqual(readBatch(batchOf(...records)), JSON.parse(JSON.stringify(records.map(asRead))));
      }),
      { numRuns: 200 },
    );
  });

  test('no byte of a frame is one that a header has: a reader tells them apart by it', () => {
    fc.assert(
      fc.property(recordsOf(), (records) => {
        for (const text of textsOf(batchOf(...records))) assert.ok(!Buffer.from(text).some((byte) => byte < 0x20));
      }),
      { numRuns: 30 },
    );
  });

  test('what records have in common is in a frame once, and again in the next frame', () => {
    const keys = ['first', 'second'];
    const records = Array.from({ length: 300 }, (_, index) =>
      admittedRecord(executionStart({ apiKeyId: keys[index % 3] ?? 'third' })),
    );
    const batch = batchOf(...records);
    const frames = textsOf(batch);
    assert.deepEqual(readBatch(batch), records);
    assert.ok(frames.length > 2);
    for (const frame of frames) {
      assert.equal(frame.split('["caller"').length - 1, 3);
      assert.equal(frame.split('["deployment"').length - 1, 1);
    }
    for (const frame of frames.slice(0, -1)) assert.equal(decodeFrame(JSON.parse(frame))?.length, FRAME_RECORDS);
    assert.equal(batch.recordsIn(frames.length), records.length);
    assert.equal(batch.recordsIn(1), decodeFrame(JSON.parse(frames[0] ?? ''))?.length);
    assert.equal(batch.recordsIn(0), 0);
  });

  test('batches that are filled at the same time each have a dictionary of their own', () => {
    const batches = [new RecordBatch(), new RecordBatch(), new RecordBatch()];
    const starts = Array.from({ length: 30 }, () => executionStart());
    for (const [index, start] of starts.entries()) {
      putRecord(batches[(index * index) % 3] as RecordBatch, admittedRecord(start));
      putRecord(batches[index % 3] as RecordBatch, terminalRecord(start));
    }
    const read = batches.flatMap(readBatch);
    for (const start of starts)
      assert.deepEqual(
        new Set(read.filter(({ id }) => id === start.id)),
        new Set([admittedRecord(start), terminalRecord(start)]),
      );
  });

  test('memory is filled on behind what a batch had, and again from its beginning', () => {
    const [first, second] = [admittedRecord(), admittedRecord()];
    const batch = batchOf(first);
    batch.endFrame();
    const before = Buffer.from(batch.bytes.subarray(0, batch.ends[0]));
    batch.continueBehind();
    assert.deepEqual([batch.records, batch.ends.length], [0, 0]);
    putRecord(batch, second);
    assert.deepEqual(readBatch(batch), [second]);
    assert.deepEqual(batch.bytes.subarray(0, batch.start), before);
    batch.clear();
    putRecord(batch, first);
    assert.equal(batch.start, 0);
    assert.deepEqual(readBatch(batch), [first]);
  });

  test('a batch without records has no frame, and one larger than its memory grows', () => {
    assert.deepEqual(textsOf(new RecordBatch()), []);
    const records = Array.from({ length: 20 }, () =>
      admittedRecord(executionStart({ requestedModel: '漢'.repeat(9_000) })),
    );
    assert.deepEqual(readBatch(batchOf(...records)), records);
  });

  test('a record that a batch did not take is not in it: whoever wrote it is told so', (context) => {
    const batch = new RecordBatch();
    const long = executionStart({ requestedModel: 'x'.repeat(10_000) });
    context.mock.method(Buffer, 'allocUnsafeSlow', () => {
      throw new Error('no memory');
    });
    let taken = 0;
    assert.throws(() => {
      for (; ; taken++) putRecord(batch, admittedRecord(long));
    });
    context.mock.restoreAll();
    assert.equal(batch.records, taken);
    assert.equal(readBatch(batch).length, taken);
  });

  test('the form as it is written: what is in a spool must be readable by the versions that follow', () => {
    const start = executionStart({
      id: 'id',
      admittedAtMs: 1_795_183_858_776,
      organizationId: 'o',
      apiKeyId: 'k',
      walletId: 'w',
      authorizedAmount: '147500000',
    });
    const end = terminalRecord(start, { responseId: 'resp_1', truncated: true });
    const values = ['id', 0, '147500000', 512, [], null];
    assert.deepEqual(
      frameTexts(admittedRecord(start), end).map((text) => JSON.parse(text) as unknown),
      [
        [
          1_795_183_858_776,
          ['caller', 'o', null, null, 'w', 'k'],
          ['deployment', 'openai/gpt-x', 'gpt-x', 'openai', 'gpt-x-2026-05-01', '1', 'chat_completions', false],
          [0, 1, ...values],
          ['ending', 'completed', 200, null, 'reported', 'final'],
          [
            0,
            1,
            ...values,
            2,
            250,
            [120, 30, 20, null, null, null],
            '427500000',
            '427500000',
            '0',
            250,
            40,
            2048,
            { truncated: true, responseId: 'resp_1' },
          ],
        ],
      ],
    );
  });

  test('what is no frame that this version knows', () => {
    const [text = ''] = frameTexts(terminalRecord(), admittedRecord());
    const [origin, caller, deployment, ending, terminal, admitted] = JSON.parse(text) as [number, ...unknown[][]];
    assert.ok(caller && deployment && ending && terminal && admitted);
    const dictionary = [origin, caller, deployment, ending];
    assert.equal(decodeFrame([...dictionary, terminal, admitted])?.length, 2);
    const badRecords = [
      null,
      8,
      {},
      [],
      [null],
      admitted.slice(0, -1),
      [...admitted, null],
      [...admitted, { other: 1 }],
      [...admitted, { truncated: true }],
      [...admitted, {}, {}],
      [1, ...admitted.slice(1)],
      [0, 0, ...admitted.slice(2)],
      [0, 9, ...admitted.slice(2)],
      [0, 1, 5, ...admitted.slice(3)],
      [0, 1, 'id', 'then', ...admitted.slice(4)],
      terminal.slice(0, -1),
      [...terminal, [1]],
      [...terminal, { other: 1 }],
      terminal.with(admitted.length, 1),
    ];
    const badEntries = [['other', 1], caller.slice(0, -1), [...caller, 1], ['x']];
    const frames = [
      null,
      1,
      'a',
      {},
      [],
      dictionary,
      [origin, admitted, caller, deployment, ending],
      [caller, deployment, ending, terminal, admitted],
      [String(origin), ...dictionary.slice(1), admitted],
      [origin],
      { type: 'admitted' },
      ['a', []],
      ...badRecords.map((record) => [...dictionary, record]),
      ...badEntries.map((entry) => [...dictionary, entry, admitted]),
    ];
    for (const frame of frames) assert.equal(decodeFrame(frame), null, JSON.stringify(frame));
  });
});
