// The records' prepared text is the JSON of the contract between gateway and jobs (execution-record.ts), whatever a client calls its model.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type EndParts, keepAdmitted, putAdmitted, type StartParts, terminalRecord } from '../../src/data-plane/metering/record-text.ts';
import type { AdmittedRecord, TerminalRecord } from '../../src/domain/executions/execution-record.ts';
import { readRecordForm } from '../../src/domain/executions/record-form.ts';
import { AsciiText } from '../../src/platform/ascii-text.ts';

const PRINCIPAL = {
  organizationId: '0190a000-0000-7000-8000-000000000002',
  teamId: null,
  userId: '0190a000-0000-7000-8000-000000000004',
  apiKeyId: '0190a000-0000-7000-8000-000000000001',
};
const OFFER = { provider: { id: 'the "first"' }, providerModel: 'm\\1', price: { version: '7' } };

function startOf(changed: Partial<StartParts>): StartParts {
  return {
    id: '01a1f94b-d458-7562-bcf4-d4f7304250a6',
    admittedAtMs: 1_795_183_858_776,
    principal: PRINCIPAL as unknown as StartParts['principal'],
    walletId: '0190a000-0000-7000-8000-000000000003',
    api: 'chat_completions',
    requestedModel: 'acme/small',
    model: 'acme/small',
    offer: OFFER as unknown as StartParts['offer'],
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

function admittedText(start: StartParts): string {
  const text = new AsciiText();
  text.begin();
  putAdmitted(text, start);
  return text.take();
}

function admittedOf(start: StartParts): AdmittedRecord {
  const { principal: _principal, offer: _offer, authorizedAmount, route, budgets, ...rest } = start;
  const { provider, providerModel, price } = OFFER;
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
  usage: { inputTokens: 250, cachedInputTokens: 0, cacheWriteTokens: null, outputTokens: 200, reasoningTokens: null, images: null },
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

const STARTS: readonly Partial<StartParts>[] = [
  {},
  { walletId: null, authorizedAmount: null, streamed: false, budgets: ['01', '"2'] },
  { route: { why: 'a "reason"' } as unknown as StartParts['route'] },
  { requestedModel: 'a "quoted" \\ name', clientRequestId: 'line\nbreak', tags: ['a', 'b:c'] },
  { requestedModel: 'long/'.repeat(500) },
  { requestedModel: 'modèle 漢 😀 \ud800 \u2028 \x7f \0', clientRequestId: 'é' },
];

describe('record text', () => {
  for (const [index, changed] of STARTS.entries()) {
    test(`start ${index}`, () => {
      const start = startOf(changed);
      const text = admittedText(start);
      assert.deepEqual(readRecordForm(JSON.parse(text)), JSON.parse(JSON.stringify(admittedOf(start))));
      // What JSON escapes has no place in the spool: a reader tells records by bytes that text never has.
      assert.ok(!Buffer.from(text).some((byte) => byte < 0x20 || byte > 0x7e), text);
    });
  }

  for (const [name, changed] of [
    ['whole', {}],
    ['with an id', { responseId: 'resp_1"' }],
    ['at its output limit', { truncated: true }],
    ['with a baseline and budgets', { baselineCost: 5n, budgetUse: 0n }],
    ['without usage', { usage: null, usageSource: null, ratedCost: null, charge: null, ttftMs: null, status: null, errorCode: 'usage_distrusted: "x"' }],
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
      assert.deepEqual(readRecordForm(JSON.parse(terminalRecord(keepAdmitted(start), end))), expected);
    });
  }

  test('the end of each start begins like it, whatever was kept and released before', () => {
    const starts = STARTS.map((changed, index) => startOf({ ...changed, requestBytes: index }));
    for (let round = 0; round < 3; round++) {
      const kept = starts.map((start) => ({ start, text: keepAdmitted(start) }));
      for (const { start, text } of round % 2 === 0 ? kept : kept.toReversed()) {
        const record = readRecordForm(JSON.parse(terminalRecord(text, END)));
        assert.deepEqual(
          { requestedModel: record?.requestedModel, requestBytes: record?.requestBytes },
          { requestedModel: start.requestedModel, requestBytes: start.requestBytes },
        );
        text.release();
        text.release();
        assert.throws(() => terminalRecord(text, END), /before it is released/);
      }
    }
  });
});
