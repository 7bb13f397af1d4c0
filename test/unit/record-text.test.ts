// The records' prepared text is the JSON of the contract between gateway and jobs (execution-record.ts), whatever a
// client calls its model.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeptStart } from '../../src/generation/execution/kept-start.ts';
import {
  type EndParts,
  keepAdmitted,
  putAdmitted,
  putTerminal,
  type StartParts,
} from '../../src/generation/execution/record-text.ts';
import type { AdmittedRecord, ExecutionRecord, TerminalRecord } from '../../src/records/execution-record.ts';
import { readFrameForm } from '../../src/records/record-form.ts';
import { FRAME_BYTES, FRAME_HEADROOM_BYTES, RecordGroup } from '../../src/records/record-group.ts';

const PRINCIPAL = {
  organizationId: '0190a000-0000-7000-8000-000000000002',
  teamId: null,
  userId: '0190a000-0000-7000-8000-000000000004',
  apiKeyId: '0190a000-0000-7000-8000-000000000001',
};
const DEPLOYMENT = { provider: { id: 'the "first"' }, providerModel: 'm\\1', price: { version: '7' } };

function startOf(changed: Partial<StartParts>): StartParts {
  return {
    id: '01a1f94b-d458-7562-bcf4-d4f7304250a6',
    admittedAtMs: 1_795_183_858_776,
    principal: PRINCIPAL as unknown as StartParts['principal'],
    walletId: '0190a000-0000-7000-8000-000000000003',
    api: 'chat_completions',
    requestedModel: 'acme/small',
    model: 'acme/small',
    deployment: DEPLOYMENT as unknown as StartParts['deployment'],
    streamed: true,
    clientRequestId: null,
    tags: [],
    authorizedAmount: 147_500_000n,
    requestBytes: 94,
    route: null,
    budgets: [],
    ...changed,
  };
}

/** The JSON of each of its frames. */
function framesOf(group: RecordGroup): string[] {
  group.endFrame();
  return group.ends.map((end, index) =>
    group.bytes.toString('latin1', (group.ends[index - 1] ?? 0) + FRAME_HEADROOM_BYTES, end),
  );
}

function recordsOf(group: RecordGroup): ExecutionRecord[] {
  return framesOf(group).flatMap((frame) => readFrameForm(JSON.parse(frame)) ?? assert.fail(frame));
}

function groupOf(...starts: readonly StartParts[]): RecordGroup {
  const group = new RecordGroup();
  for (const start of starts) {
    putAdmitted(group, start);
    group.endRecord();
  }
  return group;
}

function terminalOf(kept: KeptStart, end: EndParts): ExecutionRecord | undefined {
  const group = new RecordGroup();
  putTerminal(group, kept, end);
  group.endRecord();
  return recordsOf(group)[0];
}

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

function admittedOf(start: StartParts): AdmittedRecord {
  const { principal: _principal, deployment: _offer, authorizedAmount, route, budgets, ...rest } = start;
  const { provider, providerModel, price } = DEPLOYMENT;
  const owner = PRINCIPAL;
  const amount = authorizedAmount === null ? null : authorizedAmount.toString();
  return {
    type: 'admitted',
    ...rest,
    ...owner,
    provider: provider.id,
    providerModel,
    priceVersion: price.version,
    authorizedAmount: amount,
    ...(route === null ? {} : { route }),
    ...(budgets.length === 0 ? {} : { budgets }),
  };
}

const END: EndParts = {
  endedAtMs: 1_795_183_858_782,
  outcome: 'completed',
  status: 200,
  errorCode: null,
  usage: {
    inputTokens: 250,
    cachedInputTokens: 0,
    cacheWriteTokens: null,
    outputTokens: 200,
    reasoningTokens: null,
    images: null,
  },
  usageSource: 'reported',
  billingStatus: 'final',
  ratedCost: 2_312_500_000n,
  charge: 2_312_500_000n,
  suspense: 0n,
  latencyMs: 9,
  ttftMs: 8,
  responseBytes: 1024,
  responseId: null,
  baselineCost: null,
  budgetUse: null,
};

const NO_COUNTS = {
  inputTokens: null,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  outputTokens: null,
  reasoningTokens: null,
  images: null,
};

const STARTS: readonly Partial<StartParts>[] = [
  {},
  { walletId: null, authorizedAmount: null, streamed: false, budgets: ['01', '"2'] },
  { route: { why: 'a "reason"' } as unknown as StartParts['route'] },
  { requestedModel: 'a "quoted" \\ name', clientRequestId: 'line\nbreak', tags: ['a', 'b:c'] },
  { requestedModel: 'long/'.repeat(500) },
  { requestedModel: 'modèle 漢 😀 \ud800 \u2028 \x7f \0', clientRequestId: 'é' },
  // An id that does not begin with the time of admission, as where the clock stepped back; and what is no id of ours.
  { admittedAtMs: 1_795_183_858_775 },
  { id: '01a1f94b-d458-=562', authorizedAmount: 0n },
  { id: 'an "id"', admittedAtMs: 0 },
  { admittedAtMs: 1_795_183_858_776.5 },
  { authorizedAmount: 2n ** 53n - 1n },
  { authorizedAmount: 2n ** 53n },
  { authorizedAmount: 10n ** 30n },
];

describe('record text', () => {
  for (const [index, changed] of STARTS.entries()) {
    test(`start ${index}`, () => {
      const start = startOf(changed);
      const group = groupOf(start);
      assert.deepEqual(recordsOf(group), [plain(admittedOf(start))]);
      // What JSON escapes has no place in the spool: a reader tells frames by bytes that text never has.
      const [text = ''] = framesOf(group);
      assert.ok(!Buffer.from(text, 'latin1').some((byte) => byte < 0x20 || byte > 0x7e), text);
    });
  }

  for (const [name, changed] of [
    ['whole', {}],
    ['with an id', { responseId: 'resp_1"' }],
    ['with the ids of its items', { responseId: 'resp_1', itemIds: ['rs_1', 'msg_1"'] }],
    ['at its output limit', { truncated: true }],
    ['before it began, by a clock that stepped back', { endedAtMs: 1_795_183_850_000, latencyMs: 0, ttftMs: 0 }],
    ['with a charge that is not the cost', { charge: 1n, suspense: 5n }],
    ['with a cost and no charge', { charge: null }],
    ['with amounts beyond exact numbers', { ratedCost: 2n ** 53n + 1n, charge: 2n ** 80n, suspense: 2n ** 70n }],
    [
      'with every count',
      {
        usage: {
          inputTokens: 1,
          cachedInputTokens: 2,
          cacheWriteTokens: 3,
          outputTokens: 4,
          reasoningTokens: 5,
          images: 6,
        },
      },
    ],
    ['with input alone', { usage: { ...NO_COUNTS, inputTokens: 12 } }],
    ['with images alone', { usage: { ...NO_COUNTS, images: 1 } }],
    ['with reasoning alone', { usage: { ...NO_COUNTS, reasoningTokens: 0 } }],
    ['with a baseline and budgets', { baselineCost: 5n, budgetUse: 0n }],
    [
      'without usage',
      {
        usage: null,
        usageSource: null,
        ratedCost: null,
        charge: null,
        ttftMs: null,
        status: null,
        errorCode: 'usage_distrusted: "x"',
      },
    ],
  ] as const) {
    test(`end ${name}`, () => {
      const start = startOf({});
      const end: EndParts = { ...END, ...changed };
      const { ratedCost, charge, suspense, responseId, baselineCost, budgetUse, ...rest } = end;
      const expected: TerminalRecord = {
        ...admittedOf(start),
        type: 'terminal',
        ...rest,
        ratedCost: ratedCost?.toString() ?? null,
        charge: charge?.toString() ?? null,
        suspense: suspense.toString(),
        ...(responseId === null ? {} : { responseId }),
        ...(baselineCost === null ? {} : { baselineCost: baselineCost.toString() }),
        ...(budgetUse === null ? {} : { budgetUse: budgetUse.toString() }),
      };
      assert.deepEqual(terminalOf(keepAdmitted(start), end), expected);
    });
  }

  test('the end of each start begins like it, whatever was kept and released before', () => {
    const starts = STARTS.map((changed, index) => startOf({ ...changed, requestBytes: index }));
    for (let round = 0; round < 3; round++) {
      const kept = starts.map((start) => ({ start, text: keepAdmitted(start) }));
      for (const { start, text } of round % 2 === 0 ? kept : kept.toReversed()) {
        const record = terminalOf(text, END);
        assert.deepEqual(
          { requestedModel: record?.requestedModel, requestBytes: record?.requestBytes },
          { requestedModel: start.requestedModel, requestBytes: start.requestBytes },
        );
        text.release();
        text.release();
        assert.throws(() => terminalOf(text, END), /before it is released/);
      }
    }
  });

  test('what records share is in a frame once, and again in the next frame', () => {
    const second = { principal: { ...PRINCIPAL, apiKeyId: 'second' } as unknown as StartParts['principal'] };
    const starts = Array.from({ length: 300 }, (_, index) =>
      startOf({ id: `id-${index}`, requestBytes: index, ...(index % 3 === 0 ? second : {}) }),
    );
    const group = groupOf(...starts);
    const frames = framesOf(group);
    assert.deepEqual(
      recordsOf(group),
      starts.map((start) => plain({ ...admittedOf(start), apiKeyId: start.principal.apiKeyId })),
    );
    assert.ok(frames.length > 2);
    for (const frame of frames) assert.equal(frame.split('"c"').length - 1 + (frame.split('"o"').length - 1), 3, frame);
    for (const frame of frames.slice(0, -1))
      assert.ok(
        frame.length >= FRAME_BYTES - FRAME_HEADROOM_BYTES && frame.length < FRAME_BYTES + 200,
        String(frame.length),
      );
    assert.equal(group.recordsIn(frames.length), starts.length);
    assert.equal(group.recordsIn(1), (readFrameForm(JSON.parse(frames[0] ?? '')) ?? []).length);
    assert.equal(group.recordsIn(0), 0);
  });

  test('a record that was begun and not ended is none, and what it shared can still be referred to', () => {
    const group = new RecordGroup();
    const [first, second] = [startOf({ id: 'first' }), startOf({ id: 'second' })];
    putAdmitted(group, first);
    putAdmitted(group, second);
    group.endRecord();
    putAdmitted(group, first);
    assert.deepEqual(recordsOf(group), [plain(admittedOf(second))]);
    assert.deepEqual(framesOf(groupOf()), []);
  });

  test('a frame in which nothing was ended is none', () => {
    const group = new RecordGroup();
    putAdmitted(group, startOf({}));
    assert.deepEqual(framesOf(group), []);
    group.clear();
    putAdmitted(group, startOf({}));
    group.endRecord();
    assert.deepEqual(recordsOf(group), [plain(admittedOf(startOf({})))]);
  });

  test('groups that are filled at the same time each have what their records share', () => {
    const groups = [new RecordGroup(), new RecordGroup(), new RecordGroup()];
    const starts = Array.from({ length: 30 }, (_, index) => startOf({ id: `id-${index}` }));
    const kept = starts.map((start) => keepAdmitted(start));
    for (const [index, start] of starts.entries()) {
      const group = groups[(index * index) % 3] as RecordGroup;
      putAdmitted(group, start);
      group.endRecord();
      putTerminal(group, kept[index] as KeptStart, END);
      group.endRecord();
    }
    const read = groups.flatMap(recordsOf);
    assert.equal(read.length, 60);
    for (const start of starts) {
      const own = read.filter((record) => record.id === start.id);
      assert.deepEqual(own[0], plain(admittedOf(start)));
      assert.deepEqual({ ...own[1], ...plain(admittedOf(start)), type: 'terminal' }, own[1]);
    }
  });

  test('one deployment that is asked for by many names and in several dialects', () => {
    const starts = Array.from({ length: 200 }, (_, index) =>
      startOf({
        id: `id-${index}`,
        requestedModel: `name-${index % 40}`,
        model: `model-${index % 7}`,
        api: index % 2 === 0 ? 'messages' : 'responses',
      }),
    );
    assert.deepEqual(
      recordsOf(groupOf(...starts)),
      starts.map((start) => plain(admittedOf(start))),
    );
  });

  test('instants of a frame, in whatever order', () => {
    const times = [1_795_183_858_776, 1_795_183_860_000, 1_795_183_700_000, 1_795_183_858_776, 0];
    const starts = times.map((admittedAtMs, index) => startOf({ admittedAtMs, requestBytes: index }));
    const kept = starts.map((start) => keepAdmitted(start));
    const group = groupOf(...starts);
    for (const start of kept) {
      putTerminal(group, start, END);
      group.endRecord();
    }
    const expected = starts.map((start) => plain(admittedOf(start)));
    assert.deepEqual(
      recordsOf(group).map(({ id, admittedAtMs, requestBytes }) => ({ id, admittedAtMs, requestBytes })),
      [...expected, ...expected].map(({ id, admittedAtMs, requestBytes }) => ({ id, admittedAtMs, requestBytes })),
    );
    for (const record of recordsOf(group).slice(times.length))
      assert.equal((record as TerminalRecord).endedAtMs, END.endedAtMs);
  });

  test('an outcome that ends in many ways', () => {
    const start = startOf({});
    const ends = Array.from(
      { length: 100 },
      (_, index): EndParts => ({
        ...END,
        status: 200 + (index % 30),
        errorCode: index % 3 === 0 ? null : `code-${index % 7}`,
      }),
    );
    const group = new RecordGroup();
    for (const end of ends) {
      putTerminal(group, keepAdmitted(start), end);
      group.endRecord();
    }
    assert.deepEqual(
      recordsOf(group).map((record) => [(record as TerminalRecord).status, (record as TerminalRecord).errorCode]),
      ends.map(({ status, errorCode }) => [status, errorCode]),
    );
  });

  test('the form as it is written: what is in a spool must be readable by the versions that follow', () => {
    const kept = keepAdmitted(startOf({ clientRequestId: 'x' }));
    const group = groupOf(startOf({}));
    putTerminal(group, kept, { ...END, responseId: 'resp_1' });
    group.endRecord();
    const [frame = ''] = framesOf(group);
    assert.deepEqual(JSON.parse(frame), [
      1_795_183_858_776,
      [
        'c',
        PRINCIPAL.organizationId,
        null,
        PRINCIPAL.userId,
        PRINCIPAL.apiKeyId,
        '0190a000-0000-7000-8000-000000000003',
      ],
      ['o', 'chat_completions', 'acme/small', 'acme/small', 'the "first"', 'm\\1', '7', true],
      [0, 0, 1, '7562-bcf4-d4f7304250a6', 147_500_000, 94],
      ['e', 'completed', 200, null, 'reported', 'final'],
      [
        0,
        0,
        1,
        '7562-bcf4-d4f7304250a6',
        147_500_000,
        94,
        { clientRequestId: 'x' },
        [2, 6, 9, 8, 1024, [250, 200, 0], 2_312_500_000, { responseId: 'resp_1' }],
      ],
    ]);
  });

  test('records of the forms before', () => {
    const start = startOf({ clientRequestId: 'x', tags: ['t'], budgets: ['b'] });
    const named = plain(admittedOf(start));
    const callerValues = [named.organizationId, named.teamId, named.userId, named.apiKeyId, named.walletId];
    const deploymentValues = [
      named.api,
      named.requestedModel,
      named.model,
      named.provider,
      named.providerModel,
      named.priceVersion,
    ];
    const values = [
      named.id,
      named.admittedAtMs,
      ...callerValues,
      ...deploymentValues,
      1,
      'x',
      ['t'],
      named.authorizedAmount,
      named.requestBytes,
      null,
      ['b'],
    ];
    assert.deepEqual(readFrameForm(['a', values]), [named]);
    const end = [
      END.endedAtMs,
      'completed',
      200,
      null,
      [250, 0, null, 200, null, null],
      'reported',
      'final',
      '2312500000',
      '2312500000',
      '0',
      9,
      8,
      1024,
    ];
    const terminal = terminalOf(keepAdmitted(start), { ...END, budgetUse: null });
    assert.deepEqual(readFrameForm(['t', values, end]), [terminal]);
    // Several in a frame, which share.
    const [caller, deployment] = [
      ['c', ...callerValues],
      ['o', ...deploymentValues],
    ];
    const own = [...values.slice(0, 2), ...values.slice(13)];
    assert.deepEqual(readFrameForm([caller, deployment, ['a', 0, 1, own], ['t', 0, 1, own, end]]), [named, terminal]);
    // With names.
    assert.deepEqual(readFrameForm(named), [named]);
    assert.deepEqual(readFrameForm([named, terminal]), [named, terminal]);
  });

  test('what is no frame of records', () => {
    const caller = ['c', 'o', null, null, 'k', 'w'];
    const deployment = ['o', 'messages', 'm', 'm', 'p', 'pm', null, true];
    const ending = ['e', 'completed', 200, null, null, 'final'];
    const start = [0, 0, 1, '=id', null, 0];
    const end = [2, 0, 1, 1, 1, null, null];
    const shared = [7, caller, deployment, ending];
    assert.equal(readFrameForm([...shared, start, [...start, end]])?.length, 2);
    const values = [
      null,
      1,
      'a',
      {},
      [],
      [null],
      [[]],
      [7],
      shared,
      [...shared, null],
      [...shared, 8],
      [...shared, {}],
      [...shared, []],
      [...shared, start, ['x']],
    ];
    const badStarts = [
      [0],
      [0, 0, 1],
      [0, 0, 1, '=id', null],
      [0, 0, 1, 5, null, 0],
      [0, 0, 2, '=id', null, 0],
      [0, 1, 0, '=id', null, 0],
      [0, 0, 9, '=id', null, 0],
    ];
    const badEnds = [[], [0, 0, 1, 1, 1, null, null], [9, 0, 1, 1, 1, null, null], [2, 0, 1, 1, 1, null]];
    const frames = [
      ...values,
      ...badStarts.map((form) => [...shared, form]),
      ...badEnds.map((form) => [...shared, [...start, form]]),
      [7, start, caller, deployment],
    ];
    for (const value of frames) assert.equal(readFrameForm(value), null, JSON.stringify(value));
  });

  test('what is no frame of the forms before', () => {
    const caller = ['c', 'o', null, null, 'k', 'w'];
    const deployment = ['o', 'messages', 'm', 'm', 'p', 'pm', null];
    const start = ['id', 1, 0, null, [], null, 0];
    assert.equal(readFrameForm([caller, deployment, ['a', 0, 1, start]])?.length, 1);
    const noFrames = [
      null,
      1,
      'a',
      {},
      [],
      [null],
      [[]],
      [caller, deployment],
      ['a'],
      ['b', []],
      ['t', []],
      ['t', [], {}],
      { type: 'other' },
    ];
    const badReferences = [
      [['a', 0, 1, start]],
      [caller, deployment, ['a', 0, 2, start]],
      [caller, deployment, ['a', 1, 0, start]],
      [['a', 0, 1, start], caller, deployment],
    ];
    const badItems = [
      [caller, deployment, ['a', 0, 1]],
      [caller, deployment, ['t', 0, 1, start]],
      [caller, deployment, ['a', 0, 1, start], ['x']],
    ];
    for (const value of [...noFrames, ...badReferences, ...badItems]) {
      assert.equal(readFrameForm(value), null, JSON.stringify(value));
    }
  });
});
