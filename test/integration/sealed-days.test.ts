// Reports of sealed days: whatever is inserted, corrected, repeated, dropped, sealed and killed in between, in whatever
// order, a report that reads cells equals the same report of the facts alone, and the independent computation.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { dropOldFacts } from '../../jobs/tasks/drop-old-facts.ts';
import { sealDays } from '../../jobs/tasks/seal-days.ts';
import { type ClickHouseClient, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { ReportParams } from '../../src/storage/clickhouse/reports/report-params.ts';
import { selectRecentCorrections } from '../../src/storage/clickhouse/reports/routing-conversations.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { daysOf, SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { AT_LENGTH_ONLY, howMany } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { generateFacts } from '../support/fact-generator.ts';
import { expectedReport, latestVersions } from '../support/report-oracle.ts';
import { reportQuestions } from '../support/report-questions.ts';
import { silentLog } from '../support/silent-log.ts';

const SEED = 20_261_126;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The end of one month, and the first of the next, when clocks are changed in America. */
const SPAN = { fromMs: Date.UTC(2026, 9, 31), untilMs: Date.UTC(2026, 10, 2) };
/** Some organizations have as many on some days. */
const ORGANIZATION_FACTS_MIN = 25;

const generated = generateFacts(SEED, 9_000);
const delay = seededRandom(SEED);
/** About as they arrive: by the day, some a day late, versions in any order. */
const facts = generated.facts
  .filter(({ admittedAtMs }) => admittedAtMs >= SPAN.fromMs && admittedAtMs < SPAN.untilMs)
  .map((fact) => ({ fact, arrivesAtMs: fact.admittedAtMs + delay() ** 9 * 2 * DAY_MS }))
  .toSorted((one, other) => one.arrivesAtMs - other.arrivesAtMs)
  .map(({ fact }) => fact);

const ALL: ReportParams = {
  scope: { organizationId: null },
  filters: {},
  window: { ...SPAN, granularity: 'day', timeZone: 'UTC' },
};

let clickhouse: TestClickHouse;
let sealedDays: SealedDays;
let batches = 0;

before(async () => {
  clickhouse = await openTestClickHouse();
});
after(() => clickhouse.close());
beforeEach(async () => {
  await forget();
  sealedDays = await load();
});

async function forget(): Promise<void> {
  await clickhouse.clear();
  await clickhouse.client.command({ query: 'TRUNCATE TABLE sealed_days' });
}

/** As a process does that starts. */
function load(reports: ClickHouseClient = clickhouse.client): Promise<SealedDays> {
  const clients = { facts: clickhouse.client, reports };
  return SealedDays.load(clients, { organizationFactsMin: ORGANIZATION_FACTS_MIN });
}

/** As the link of jobs inserts. */
async function insert(some: readonly RequestFact[], changes: () => Promise<void> = async () => {}): Promise<void> {
  await sealedDays.whileOpen(daysOf(some), async () => {
    await insertFacts(clickhouse.client, some, `batch-${batches++}`);
    await changes();
  });
}

interface Asked {
  readonly usesCells: boolean;
}

/** Both ways to the same report. */
async function assertSameReport(question: ReportParams, name: string): Promise<Asked> {
  const recentCorrections = question.scope.organizationId !== null;
  let usesCells = false;
  const found = await sealedDays.reading(question, (params) => {
    usesCells = params.sealed !== undefined;
    return routingReport(clickhouse.client, { ...params, recentCorrections });
  });
  assertFigures(found, await routingReport(clickhouse.client, { ...question, recentCorrections }), name);
  return { usesCells };
}

async function countCells(): Promise<number> {
  const [row] = await selectRows<{ cells: number }>(
    clickhouse.client,
    'SELECT toUInt32(count()) AS cells FROM sealed_groups',
  );
  return row?.cells ?? 0;
}

class Killed extends Error {}

/** A client of a process that is killed at one of its statements, which is then done, or not. */
function killedAt(statement: number, isDone: boolean): ClickHouseClient {
  let left = statement;
  const next = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    if (left-- > 0) return run();
    if (isDone && left === -1) await run();
    throw new Killed();
  };
  const { client } = clickhouse;
  return {
    query: (params: Parameters<typeof client.query>[0]) => next(() => client.query(params)),
    command: (params: Parameters<typeof client.command>[0]) => next(() => client.command(params)),
    insert: (params: Parameters<typeof client.insert>[0]) => next(() => client.insert(params)),
  } as unknown as ClickHouseClient;
}

async function isKilled(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
  });
}

/** What happens to facts, at random: in order of arrival, and again, later, changed, and half. */
class Events {
  private readonly random: () => number;
  private arrived = 0;
  /** Which of them have happened. */
  readonly log: number[] = [];
  /** Everything that ever came. */
  readonly came: RequestFact[] = [];

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  /** Of facts with the same version, the one that came last counts. */
  latest(): RequestFact[] {
    return latestVersions(this.came.toReversed());
  }

  private below(max: number): number {
    return Math.floor(this.random() * max);
  }

  /** Side by side, as a gateway sends what it could not send before. */
  private some(from: readonly RequestFact[], max: number): RequestFact[] {
    const first = this.below(from.length);
    return from.slice(first, first + 1 + this.below(max));
  }

  private async arrive(some: readonly RequestFact[]): Promise<void> {
    this.came.push(...some);
    await insert(some);
  }

  async next(): Promise<void> {
    const events = [
      () => this.comeNext(),
      () => this.comeNext(),
      () => this.comeAgain(),
      () => this.correct(),
      () => this.killSealing(),
      () => this.killInserting(),
    ];
    const event = this.below(events.length);
    this.log.push(event);
    await events[event]?.();
    if (this.random() < 0.5) await this.seal();
  }

  private async comeNext(): Promise<void> {
    const next = facts.slice(this.arrived, this.arrived + 50 + this.below(250));
    this.arrived += next.length;
    await this.arrive(next);
  }

  private async comeAgain(): Promise<void> {
    await this.arrive(this.some(this.came, 20));
  }

  private async correct(): Promise<void> {
    const corrected = this.some(this.latest(), 5).map((fact) => ({
      ...fact,
      version: fact.version + 1,
      status: 500,
      charge: fact.charge === null ? null : '7',
      latencyMs: 1_234,
      ...(fact.route == null ? {} : { route: { ...fact.route, tier: 'strong', task: 'corrected', cached: true } }),
    }));
    await this.arrive(corrected);
  }

  private async seal(): Promise<void> {
    await sealedDays.sealBefore(SPAN.untilMs - this.below(2) * DAY_MS);
  }

  private async restart(): Promise<void> {
    sealedDays = await load();
  }

  private async killSealing(): Promise<void> {
    const dying = await load(killedAt(this.below(28), this.random() < 0.5)).catch(() => null);
    if (dying !== null) await isKilled(dying.sealBefore(SPAN.untilMs));
    await this.restart();
  }

  /** Some of its facts are there; they come again, as the cursor has not moved. */
  private async killInserting(): Promise<void> {
    const some = this.some(facts.slice(0, this.arrived), 30);
    this.came.push(...some.slice(0, 10));
    await isKilled(
      insert(some.slice(0, 10), async () => {
        throw new Killed();
      }),
    );
    await this.restart();
    if (this.random() < 0.5) await this.arrive(some);
  }
}

describe('reports of sealed days', () => {
  test('equal those of the facts, whatever came, and was sealed and killed, in between', {
    timeout: 1_200_000,
  }, async () => {
    const rounds = howMany({ short: 1, long: 3 });
    let withCells = 0;
    for (let round = 0; round < rounds; round++) {
      await forget();
      sealedDays = await load();
      const events = new Events(SEED + round);
      for (let step = 0; step < howMany({ short: 7, long: 15 }); step++) {
        await events.next();
        const [asked = ALL] = fc.sample(reportQuestions(generated.pools, SPAN), {
          numRuns: 1,
          seed: SEED + round * 100 + step,
        });
        for (const question of [asked, { ...ALL, window: { ...ALL.window, fromMs: SPAN.fromMs - step * HOUR_MS } }]) {
          const name = `round ${round}, ${events.log.join(' ')}, ${JSON.stringify(question)}`;
          if ((await assertSameReport(question, name)).usesCells) withCells += 1;
        }
      }
      await sealedDays.sealBefore(SPAN.untilMs);
      for (const organizationId of [null, ...generated.pools.organizations.slice(0, 2)]) {
        const question = { ...ALL, scope: { organizationId }, recentCorrections: organizationId !== null };
        const report = await sealedDays.reading(question, (params) =>
          routingReport(clickhouse.client, { ...params, recentCorrections: question.recentCorrections }),
        );
        assertFigures(report, expectedReport(events.latest(), question), 'the computed report');
      }
    }
    assert.ok(withCells > rounds * 3, `${withCells} reports have read cells`);
  });

  test('read no fact where all of the window is sealed, and only what is not sealed otherwise', async () => {
    await insert(facts);
    assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 2);
    assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 0);
    const statements: string[] = [];
    const watched = {
      query: async (params: { query: string }) => {
        statements.push(params.query);
        return clickhouse.client.query(params);
      },
    } as unknown as ClickHouseClient;
    const ask = (question: ReportParams) =>
      sealedDays.reading(question, (params) => routingReport(watched, { ...params, recentCorrections: false }));
    await ask(ALL);
    assert.equal(statements.length, 5);
    assert.ok(statements.every((statement) => !statement.includes('request_facts')));
    // An organization that is small on a day has no cells of it, and a filter needs the facts.
    const [largest = ''] = generated.pools.organizations;
    const ofLargest = { ...ALL, scope: { organizationId: largest } };
    for (const [question, isSealed] of [
      [ofLargest, true],
      [{ ...ALL, filters: { routed: true } }, false],
      [{ ...ALL, scope: { organizationId: largest, teamId: generated.pools.teams[0] ?? '' } }, false],
    ] as const) {
      statements.length = 0;
      await ask(question);
      assert.equal(
        statements.some((statement) => statement.includes('sealed_groups')),
        isSealed,
      );
    }
    // The latest corrections are found in cells; what is shown of them is in the facts.
    statements.length = 0;
    await sealedDays.reading(ofLargest, (params) => selectRecentCorrections(watched, params));
    assert.deepEqual(
      statements.map((statement) => statement.includes('request_facts')),
      [false, true],
    );
  });

  test('days are sealed until the time for it is over, or the process stops', async () => {
    await insert(facts);
    let asked = 0;
    assert.equal(await sealedDays.sealBefore(SPAN.untilMs, () => asked++ > 0), 1);
    sealedDays.stopSealing();
    assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 0);
    assert.equal(sealedDays.count, 1);
  });

  test(
    'a late fact opens its day alone, also for the next process; the day is sealed again',
    AT_LENGTH_ONLY,
    async () => {
      await insert(facts);
      await sealedDays.sealBefore(SPAN.untilMs);
      const late = facts.find(({ route }) => route != null) as RequestFact;
      const before = sealedDays.count;
      await insert([{ ...late, version: 9, latencyMs: 77_777 }]);
      assert.equal(sealedDays.count, before - 1);
      sealedDays = await load();
      assert.equal(sealedDays.count, before - 1);
      await assertSameReport(ALL, 'open');
      const cells = await countCells();
      assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 1);
      await assertSameReport(ALL, 'sealed again');
      assert.ok((await countCells()) <= cells, 'the cells of the first seal are gone');
    },
  );

  test('a day is not sealed while facts of it are being inserted, and an insert waits for the seal of its day', async () => {
    await insert(facts);
    const [first] = facts as [RequestFact];
    let sealed = 0;
    await insert([first], async () => {
      sealed = await sealedDays.sealBefore(SPAN.untilMs);
    });
    assert.equal(sealed, 1);
    const order: string[] = [];
    const sealing = sealedDays.sealBefore(SPAN.untilMs).then((days) => order.push(`sealed ${days}`));
    // The only day that is left is being sealed once its organizations are asked for.
    const inserting = insert([{ ...first, version: 8 }], async () => {
      order.push('inserted');
    });
    await Promise.all([sealing, inserting]);
    await assertSameReport(ALL, order.join());
    await sealedDays.sealBefore(SPAN.untilMs);
    await assertSameReport(ALL, 'sealed again');
  });

  test(
    'cells that another version made are not read, and made anew; a day without facts has none',
    AT_LENGTH_ONLY,
    async () => {
      await insert(facts);
      await sealedDays.sealBefore(SPAN.untilMs);
      const rows = await selectRows<{ definition: string }>(clickhouse.client, 'SELECT * FROM sealed_days FINAL');
      await clickhouse.client.insert({
        table: 'sealed_days',
        values: rows.map((row) => ({ ...row, number: 1_000_000, definition: 'of another version' })),
        format: 'JSONEachRow',
      });
      sealedDays = await load();
      assert.equal(sealedDays.count, 0);
      assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 2);
      await assertSameReport(ALL, 'made anew');
    },
  );

  test('months that are dropped are open, and the job seals what has settled', async () => {
    await insert(facts);
    const contextAt = (nowMs: number, factsRetentionDays: number | null): JobContext =>
      ({
        clickhouse: () => clickhouse.client,
        sealedDays: () => sealedDays,
        factsRetentionDays,
        clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
        log: silentLog,
      }) as unknown as JobContext;
    // Two hours after its end, the last day has not settled.
    assert.deepEqual(await sealDays(contextAt(SPAN.untilMs + 2 * HOUR_MS, null)), { sealed: 1 });
    assert.deepEqual(await sealDays(contextAt(SPAN.untilMs + 3 * HOUR_MS, null)), { sealed: 1 });
    assert.deepEqual(await dropOldFacts(contextAt(Date.UTC(2026, 10, 9), 7)), { dropped: ['202610'] });
    assert.equal(sealedDays.count, 1);
    const report = await sealedDays.reading(ALL, (params) =>
      routingReport(clickhouse.client, { ...params, recentCorrections: false }),
    );
    const kept = latestVersions(facts).filter(({ admittedAtMs }) => admittedAtMs >= Date.UTC(2026, 10, 1));
    assertFigures(report, expectedReport(kept, { ...ALL, recentCorrections: false }), 'without October');
    assert.deepEqual(await sealDays({ ...contextAt(SPAN.untilMs, null), sealedDays: () => null }), { sealed: 0 });
  });
});
