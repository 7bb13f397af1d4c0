// The journal of records over a real spool: a record that no frame can hold is lost alone, whatever comes beside it in
// its tick and behind it in the queue of those that are written later.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ACTIONS } from '../../src/domain/guardrails/policy.ts';
import { FINDINGS_LISTED_MAX, NOT_SCANNED, type StageReport } from '../../src/domain/guardrails/screening-report.ts';
import { type ModelRoute, REJECTED_LISTED_MAX } from '../../src/domain/routing/model-route.ts';
import type { Admission } from '../../src/generation/admission/admission.ts';
import { TAGS_MAX } from '../../src/generation/execution/client-labels.ts';
import { Execution, type Metering } from '../../src/generation/execution/execution.ts';
import { NO_USAGE } from '../../src/generation/execution/observed-end.ts';
import { RecordJournal, type RecordSink } from '../../src/generation/execution/record-journal.ts';
import type { Screening } from '../../src/generation/guardrails/screening.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import type { ExecutionRecord, ExecutionStart } from '../../src/records/execution-record.ts';
import { CLIENT_REQUEST_ID_LENGTH_MAX, OWN_FAILURES_MAX } from '../../src/records/field-types.ts';
import { FRAME_BYTES_MAX, FRAME_RECORDS, RecordBatch } from '../../src/records/record-batch.ts';
import { readEpochSpool } from '../../src/storage/spool/spool-directory.ts';
import { SpoolReader } from '../../src/storage/spool/spool-reader.ts';
import { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';
import { executionStart, terminalRecord } from '../support/execution-records.ts';
import { frameBytesOf, putRecord, recordsOf } from '../support/spool-records.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const EPOCH = 7;
const LONG = 'x'.repeat(FRAME_BYTES_MAX);

class World {
  readonly faults: string[] = [];
  readonly writer: SpoolWriter;
  readonly journal: RecordJournal;
  /** How many batches the journal has taken. */
  batches = 0;
  private readonly directory: string;
  private tick: (() => void)[] = [];

  constructor(context: TestContext) {
    context.mock.timers.enable({ apis: ['setInterval'] });
    context.after(() => this.writer.close());
    this.directory = temporaryDirectory(context);
    this.writer = SpoolWriter.open({
      directory: this.directory,
      epoch: EPOCH,
      segmentBytesMax: 1 << 24,
      fsyncIntervalMs: 1_000_000,
      log: createLog({ level: 'silent', process: 'test' }),
      clock: systemClock,
    });
    const sink: RecordSink = {
      takeBatch: () => {
        this.batches += 1;
        return this.writer.takeBatch();
      },
      appendBatch: (batch) => this.writer.appendBatch(batch),
    };
    const note = (fault: unknown) => this.faults.push((fault as Error).message);
    this.journal = new RecordJournal(sink, note, (run) => this.tick.push(run));
  }

  endTick(): void {
    for (const run of this.tick.splice(0)) run();
  }

  get written(): ExecutionRecord[] {
    const spool = readEpochSpool(this.directory, EPOCH);
    const limits = { recordsMax: 10_000, bytesMax: 1 << 24 };
    return new SpoolReader().readBatch(spool.directory, 1, 0, limits).records as ExecutionRecord[];
  }

  /** How the owner of each record that is appended heard of it: 1 written, 0 not. */
  append(starts: readonly ExecutionStart[]): number[] {
    const heard: number[] = [];
    starts.forEach((start, index) => {
      const hear = (how: number) => () => {
        assert.equal(heard[index], undefined, 'told twice');
        heard[index] = how;
      };
      this.journal.append(start, null, { onWritten: hear(1), onUnwritten: hear(0) });
    });
    return heard;
  }
}

function startsOf(count: number, isLong: (index: number) => boolean): ExecutionStart[] {
  return Array.from({ length: count }, (_, index) => executionStart(isLong(index) ? { tags: [LONG] } : {}));
}

describe('a record that no frame can hold', () => {
  test('is lost alone: the others of its tick are written, in their order', (context) => {
    const world = new World(context);
    const starts = startsOf(FRAME_RECORDS * 3 + 5, (index) => index === 0 || index === 30 || index === 31);
    const heard = world.append(starts);
    world.endTick();
    assert.deepEqual(
      heard,
      starts.map(({ tags }) => (tags.length === 0 ? 1 : 0)),
    );
    const ids = starts.filter(({ tags }) => tags.length === 0).map(({ id }) => id);
    assert.deepEqual(
      world.written.map(({ id }) => id),
      ids,
    );
    assert.equal(world.faults.length, 3);
    assert.match(world.faults[0] as string, /a record of \d+ characters is too long/);
    assert.equal(world.writer.recordsAppended, ids.length);
    assert.ok(world.writer.healthy, 'the spool takes records of others');
  });

  test('alone in its tick, or one that is no JSON', (context) => {
    const world = new World(context);
    const [alone] = startsOf(1, () => true) as [ExecutionStart];
    assert.deepEqual([world.append([alone]), world.endTick()][0], [0]);
    const wrong = executionStart({ tags: [10n as unknown as string] });
    const heard = world.append([executionStart(), wrong, executionStart()]);
    world.endTick();
    assert.deepEqual(heard, [1, 0, 1]);
    assert.equal(world.written.length, 2);
  });

  test('is not tried for ever where nobody waits for it, and keeps nothing behind it back', (context) => {
    const world = new World(context);
    const [before, long, behind] = startsOf(3, (index) => index === 1) as [
      ExecutionStart,
      ExecutionStart,
      ExecutionStart,
    ];
    for (const start of [before, long, behind]) world.journal.appendWhenPossible(start, null);
    for (let turn = 0; turn < 10; turn++) context.mock.timers.tick(1_000);
    assert.deepEqual(
      world.written.map(({ id }) => id),
      [before.id, behind.id],
    );
    assert.equal(world.batches, 1);
    assert.equal(world.faults.length, 1);
  });
});

test('records that are too long together lie in frames of their own, each as it is', () => {
  const batch = new RecordBatch();
  const records = Array.from({ length: 60 }, (_, index) =>
    terminalRecord(executionStart({ tags: ['ю'.repeat(index % 2 === 0 ? 40_000 : 1)] }), { ttftMs: index }),
  );
  for (const record of records) putRecord(batch, record);
  assert.deepEqual(recordsOf(batch), records);
  assert.equal(batch.refused.size, 0);
  assert.equal(batch.recordsIn(batch.ends.length), records.length);
  let { start } = batch;
  for (const end of batch.ends) {
    assert.ok(end - start <= FRAME_BYTES_MAX);
    start = end;
  }
});

test('the longest record that any tenant or provider can bring about is far shorter than a frame', () => {
  // Of names of models, which are any visible characters, each may be escaped.
  const model = '"'.repeat(200);
  const slug = 's'.repeat(63);
  const repeat = <Value>(count: number, value: Value): Value[] => Array.from({ length: count }, () => value);
  const finding = {
    policy: slug,
    version: 2_147_483_647,
    rule: slug,
    entity: 'e'.repeat(64),
    action: 'cloak',
  } as const;
  const stage: StageReport = {
    action: 'cloaked',
    findings: repeat(FINDINGS_LISTED_MAX + ACTIONS.length, { ...finding, count: 4_294_967_295 }),
    not_scanned: NOT_SCANNED,
  };
  const rejected = repeat(REJECTED_LISTED_MAX, { model, tier: slug, reason: 'credential_unavailable' as const });
  const route: ModelRoute = {
    requested: model,
    tier: slug,
    classified_tier: slug,
    reason: 'low_confidence_escalated',
    cached: false,
    task: slug,
    correction: false,
    previous_model: model,
    previous_tier: slug,
    sticky: false,
    baseline_model: model,
    policy: slug,
    policy_version: 2_147_483_647,
    escalated: true,
    rejected,
    distribution: Object.fromEntries(Array.from({ length: 255 }, (_, index) => [String(index).padEnd(63, 's'), 1 / 3])),
  };
  const uuid = executionStart().id;
  const start = executionStart({
    model,
    requestedModel: model,
    provider: slug,
    providerModel: model,
    route,
    tags: repeat(TAGS_MAX, 't'.repeat(64)),
    clientRequestId: '"'.repeat(CLIENT_REQUEST_ID_LENGTH_MAX),
    budgets: repeat(64, uuid),
  });
  const record = terminalRecord(start, {
    screening: { input: stage, output: stage },
    ownFailures: repeat(OWN_FAILURES_MAX, { credential_id: uuid, reason: slug, status: 500 }),
    itemIds: repeat(64, 'ÿ'.repeat(128)),
    responseId: 'r'.repeat(128),
    usageDetails: {
      calls: Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`${index}`.padEnd(40, 't'), 9])),
    },
    // A model has as many deployments as an operator gives it.
    attempts: repeat(100, { provider: slug, started_ms: 1e6, ended_ms: 1e6, cause: slug, status: 500 }),
  });
  const bytes = frameBytesOf(record);
  assert.ok(bytes > 100_000 && bytes < FRAME_BYTES_MAX / 4, `${bytes} bytes`);
});

describe('executions of two organizations that end in one tick', () => {
  const screened = (entities: number): Screening => {
    const found = { policy: 'own', version: 1, rule: 'asked', action: 'flag', count: 1 } as const;
    const findings = Array.from({ length: entities }, (_, index) => ({
      ...found,
      entity: `E${index}`.padEnd(64, 'e'),
    }));
    const input: StageReport = { action: 'flagged', findings };
    return { report: { input }, rule: 'asked' } as Partial<Screening> as Screening;
  };

  function executionOf(world: World, organizationId: string, screening: Screening | null): [Execution, string[]] {
    const heard: string[] = [];
    const release = (use: unknown) => heard.push(typeof use === 'string' ? use : 'used');
    const admission = { walletId: null, hold: null, budgets: [], budgetUse: () => 0n, release };
    const ignore = () => undefined;
    const metering: Metering = {
      journal: world.journal,
      clock: systemClock,
      metrics: { ended: ignore, observeOverhead: ignore } as Partial<Metering['metrics']> as Metering['metrics'],
      guardrails: { ended: ignore } as Partial<Metering['guardrails']> as Metering['guardrails'],
      savedResponses: {} as Metering['savedResponses'],
    };
    const deployment = { provider: { id: 'sim' }, providerModel: 'small', price: null };
    const { id, admittedAtMs, api, model, requestedModel } = executionStart();
    const execution = new Execution(
      {
        id,
        admittedAtMs,
        api,
        model,
        requestedModel,
        streamed: false,
        clientRequestId: null,
        traceparent: null,
        tags: [],
        route: null,
        requestBytes: 1,
        principal: { organizationId, teamId: null, userId: null, apiKeyId: organizationId } as never,
        deployment: deployment as never,
      },
      admission as unknown as Admission,
      systemClock.monotonicMs(),
      metering,
    );
    execution.screening = screening;
    return [execution, heard];
  }

  test('one whose record is too long shows its client no end, nobody pays, and the others are charged', (context) => {
    const world = new World(context);
    const owner = (heard: string[]) => ({
      onRecorded: () => heard.push('recorded'),
      onUnrecorded: () => heard.push('unrecorded'),
    });
    const all = Array.from({ length: 50 }, (_, index) =>
      executionOf(world, index === 20 ? 'theirs' : 'ours', index === 20 ? screened(20_000) : null),
    );
    for (const [execution] of all) execution.begin(owner([]));
    world.endTick();
    for (const [execution, heard] of all)
      execution.end(
        { outcome: 'completed', status: 200, errorCode: null, measured: NO_USAGE, responseBytes: 1, responseId: null },
        owner(heard),
      );
    world.endTick();
    assert.deepEqual(
      all.map(([, heard]) => heard.join(' ')),
      all.map((_, index) => (index === 20 ? 'unrecorded unrecorded' : 'used recorded')),
    );
    context.mock.timers.tick(1_000);
    const ends = world.written.filter(({ type }) => type === 'terminal') as ReturnType<typeof terminalRecord>[];
    assert.equal(ends.length, 50);
    const [lost] = ends.filter(({ organizationId }) => organizationId === 'theirs');
    assert.deepEqual([lost?.outcome, lost?.errorCode, lost?.guardrail], ['process_killed', 'record_lost', 'asked']);
    const { batches } = world;
    context.mock.timers.tick(10_000);
    assert.equal(world.batches, batches, 'nothing is left to be written');
  });
});
