// Measures the two records of a request: writing them into a batch, reading them back, and their bytes in the spool.
// Nanoseconds, median of rounds. The argument says how many requests end in one tick.

import { systemClock } from '../../src/platform/clock.ts';
import type { ExecutionEnd, ExecutionStart } from '../../src/records/execution-record.ts';
import { FRAME_HEADROOM_BYTES, RecordBatch } from '../../src/records/record-batch.ts';
import { decodeFrame } from '../../src/records/record-codec.ts';
import { median } from '../harness/median.ts';

const ROUNDS = 25;
const BATCHES = 1_000;
const requestsPerTick = Number(process.argv[2] ?? 10);

function startOf(index: number): ExecutionStart {
  return {
    id: `01a1f94b-d458-7562-bcf4-d4f73042${(index & 0xffff).toString(16).padStart(4, '0')}`,
    admittedAtMs: 1_795_183_858_776 + index,
    organizationId: `0190a000-0000-7000-8000-00000000000${index % 3}`,
    teamId: null,
    userId: '0190a000-0000-7000-8000-000000000004',
    walletId: '0190a000-0000-7000-8000-000000000003',
    apiKeyId: '0190a000-0000-7000-8000-000000000001',
    model: 'openai/gpt-4o',
    requestedModel: 'openai/gpt-4o',
    provider: 'openai',
    providerModel: `gpt-4o-2024-11-2${index % 3}`,
    priceVersion: '7',
    api: 'chat_completions',
    streamed: true,
    authorizedAmount: '147500000',
    requestBytes: 1024,
    tags: [],
    clientRequestId: null,
    route: null,
    budgets: [],
  };
}

function endOf(start: ExecutionStart): ExecutionEnd {
  return {
    outcome: 'completed',
    status: 200,
    errorCode: null,
    usageSource: 'reported',
    billingStatus: 'final',
    endedAtMs: start.admittedAtMs + 6,
    usage: {
      inputTokens: 250,
      cachedInputTokens: 0,
      cacheWriteTokens: null,
      outputTokens: 200,
      reasoningTokens: null,
      images: null,
    },
    charge: 2_312_500_000n.toString(),
    ratedCost: 2_312_500_000n.toString(),
    suspense: '0',
    latencyMs: 9,
    ttftMs: 8,
    responseBytes: 1024,
    baselineCost: null,
    truncated: false,
    budgetUse: null,
    responseId: null,
    itemIds: [],
  };
}

const batch = new RecordBatch();
const ticks = Array.from({ length: BATCHES }, (_, tick) =>
  Array.from({ length: requestsPerTick }, (__, index) => startOf(tick * requestsPerTick + index)),
);

function write(starts: readonly ExecutionStart[]): void {
  batch.clear();
  for (const start of starts) batch.append(start, null);
  for (const start of starts) batch.append(start, endOf(start));
  batch.endFrame();
}

function framesOf(): Buffer[] {
  return batch.ends.map((end, index) =>
    Buffer.from(batch.bytes.subarray((batch.ends[index - 1] ?? 0) + FRAME_HEADROOM_BYTES, end)),
  );
}

function medianNs(work: () => number): string {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const beganMs = systemClock.monotonicMs();
    const count = work();
    return ((systemClock.monotonicMs() - beganMs) * 1e6) / count;
  });
  return `${median(rounds).toFixed(0)} ns (least ${Math.min(...rounds).toFixed(0)})`;
}

const writing = medianNs(() => {
  for (const starts of ticks) write(starts);
  return BATCHES * requestsPerTick;
});
const frames = framesOf();
const reading = medianNs(() => {
  let records = 0;
  for (let round = 0; round < BATCHES; round++)
    for (const frame of frames) records += decodeFrame(JSON.parse(frame.toString('utf8')))?.length ?? 0;
  return records;
});
console.log(`${requestsPerTick} requests in a tick`);
console.log(`write the records of a request   ${writing}`);
console.log(`read one record                  ${reading}`);
console.log(`bytes of a record                ${((batch.ends.at(-1) ?? 0) / (2 * requestsPerTick)).toFixed(0)}`);
