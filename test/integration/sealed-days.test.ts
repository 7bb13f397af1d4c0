// Reports of sealed days: whatever is inserted, corrected, repeated, dropped, sealed and killed in between, in whatever
// order, a report that reads cells equals the same report of the facts alone, and the independent computation.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import type { JobContext } from '../../jobs/scheduling/job.ts';
import { compareCells } from '../../jobs/tasks/compare-cells.ts';
import { dropOldFacts } from '../../jobs/tasks/drop-old-facts.ts';
import { sealDays } from '../../jobs/tasks/seal-days.ts';
import { type ClickHouseClient, type ClickHouseReader, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import {
  ALL_ORGANIZATIONS,
  type ReportParams,
  type SealedCover,
} from '../../src/storage/clickhouse/reports/report-params.ts';
import {
  selectRecentCorrections,
  selectRoutingConversations,
} from '../../src/storage/clickhouse/reports/routing-conversations.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { SEALED_CELLS } from '../../src/storage/clickhouse/reports/sealed-cells.ts';
import { daysOf, SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { AT_LENGTH_ONLY, howMany, someOf } from '../support/at-length.ts';
import { seededRandom } from '../support/byte-splits.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { generateFacts } from '../support/fact-generator.ts';
import { expectedReport, isCounted, latestVersions } from '../support/report-oracle.ts';
import { reportQuestions } from '../support/report-questions.ts';
import { silentLog } from '../support/silent-log.ts';

const SEED = 20_261_126;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The end of one month, and the first of the next, when clocks are changed in America. */
const SPAN = { fromMs: Date.UTC(2026, 9, 31), untilMs: Date.UTC(2026, 10, 2) };
/** Some organizations have as many on some days. */
const ORGANIZATION_FACTS_MIN = 25;

const generated = generateFacts(SEED, howMany({ short: 6_000, long: 9_000 }));
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
let second: ClickHouseClient;
let sealedDays: SealedDays;
let batches = 0;

before(async () => {
  clickhouse = await openTestClickHouse();
  second = await clickhouse.connect();
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

/** As the link of jobs reads reports. */
const twoAtOnce: ClickHouseReader = {
  query: (statement) => clickhouse.client.query(statement),
  secondConnection: { query: (statement) => second.query(statement) },
};

interface Asked {
  readonly usesCells: boolean;
}

/** Both ways to the same report. */
async function assertSameReport(question: ReportParams, name: string): Promise<Asked> {
  const recentCorrections = question.scope.organizationId !== null;
  let usesCells = false;
  const found = await sealedDays.reading(question, async (params) => {
    usesCells = params.sealed !== undefined;
    // Reports of as few requests as these use names.
    assert.deepEqual(
      await selectRoutingConversations(clickhouse.client, params, 'positions'),
      await selectRoutingConversations(clickhouse.client, params, 'names'),
    );
    return routingReport(twoAtOnce, { ...params, recentCorrections });
  });
  assertFigures(found, await routingReport(clickhouse.client, { ...question, recentCorrections }), name);
  return { usesCells };
}

async function countCells(counted = 'count()'): Promise<number> {
  const [row] = await selectRows<{ cells: number }>(
    clickhouse.client,
    `SELECT toUInt32(${counted}) AS cells FROM sealed_groups`,
  );
  return row?.cells ?? 0;
}

/** What of a report's window is not sealed; undefined: nothing is. */
function openOf(question: ReportParams): Promise<SealedCover['open'] | undefined> {
  return sealedDays.reading(question, async ({ sealed }) => sealed?.open);
}

function isIn(fromMs: number, untilMs = Number.POSITIVE_INFINITY): (fact: RequestFact) => boolean {
  return ({ admittedAtMs }) => admittedAtMs >= fromMs && admittedAtMs < untilMs;
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
    await sealedDays.sealBefore(SPAN.untilMs - this.below(2) * this.below(30) * HOUR_MS);
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
    const rounds = howMany({ short: 1, long: 2 });
    let withCells = 0;
    for (let round = 0; round < rounds; round++) {
      await forget();
      sealedDays = await load();
      const events = new Events(SEED + round);
      for (let step = 0; step < howMany({ short: 6, long: 8 }); step++) {
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
    // An organization that is small on a day has no cells of it, and a filter by more than a status needs the facts.
    const [largest = ''] = generated.pools.organizations;
    const ofLargest = { ...ALL, scope: { organizationId: largest } };
    for (const [question, isSealed] of [
      [ofLargest, true],
      [{ ...ALL, filters: { status: 'error' } }, true],
      [{ ...ofLargest, filters: { status: '4xx' } }, true],
      [{ ...ALL, filters: { status: 'error', model: generated.pools.models[0] ?? '' } }, false],
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

  test('sums of tokens beyond 2^64 are the same of cells and of facts, and no damage', async () => {
    const one = latestVersions(facts).find((fact) => fact.route != null && fact.usage !== null && isCounted(fact));
    assert.ok(one?.usage);
    const usage = { ...one.usage, inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 0 };
    const count = 2_200;
    const many = Array.from({ length: count }, (_, index) => ({
      ...one,
      id: `01990000-0000-7000-8000-${String(index).padStart(12, '0')}`,
      api: 'responses' as const,
      status: 200 + (index % 2),
      usage,
    }));
    await insert(many);
    await sealedDays.sealBefore(SPAN.untilMs);
    assert.ok((await assertSameReport(ALL, 'most tokens')).usesCells);
    const { totals } = await sealedDays.reading(ALL, (params) =>
      routingReport(twoAtOnce, { ...params, recentCorrections: false }),
    );
    assert.equal(totals.tokens, BigInt(count) * BigInt(Number.MAX_SAFE_INTEGER));
    assert.deepEqual((await sealedDays.compare(() => true)).damaged, []);
  });

  test('with a status equal the computed ones, also where facts are corrected and where a day is open', async () => {
    await insert(facts);
    await sealedDays.sealBefore(SPAN.untilMs - 5 * HOUR_MS);
    const corrected = latestVersions(facts)
      .filter((fact) => fact.route != null && isCounted(fact))
      .slice(0, 40)
      .map((fact, index) => ({ ...fact, version: fact.version + 1, status: index % 3 === 0 ? null : 429 }));
    const came = [...facts, ...corrected];
    const statuses = ['success', '4xx', 'error', '429'].slice(0, howMany({ short: 1, long: 4 }));
    let turn = 0;
    for (const step of ['sealed', 'corrected', 'sealed again']) {
      if (step === 'corrected') await insert(corrected);
      if (step === 'sealed again') await sealedDays.sealBefore(SPAN.untilMs - HOUR_MS);
      const latest = latestVersions((step === 'sealed' ? facts : came).toReversed());
      for (const status of statuses) {
        for (const organizationId of someOf([null, generated.pools.organizations[0] ?? ''], 2, turn++)) {
          const recentCorrections = organizationId !== null;
          const question = { ...ALL, scope: { organizationId }, filters: { status }, recentCorrections };
          const name = `${step}, ${status}, ${organizationId}`;
          const report = await sealedDays.reading(question, (params) => {
            assert.ok(params.sealed !== undefined, name);
            return routingReport(clickhouse.client, { ...params, recentCorrections });
          });
          assertFigures(report, expectedReport(latest, question), name);
        }
      }
    }
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
      const late = facts.find((fact) => fact.route != null && isCounted(fact)) as RequestFact;
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

  const meanwhile =
    'a day is not sealed while facts of it are being inserted, and no insert waits for the seal of its day';
  test(meanwhile, AT_LENGTH_ONLY, async () => {
    await insert(facts);
    const [first] = facts as [RequestFact];
    let sealed = 0;
    await insert([first], async () => {
      sealed = await sealedDays.sealBefore(SPAN.untilMs);
    });
    assert.equal(sealed, 1);
    // It comes while cells of the only day that is left are being made, before the last of them.
    let isInserted = false;
    const { client } = clickhouse;
    const interrupted = {
      query: (params: Parameters<typeof client.query>[0]) => client.query(params),
      insert: (params: Parameters<typeof client.insert>[0]) => client.insert(params),
      command: async (params: Parameters<typeof client.command>[0]) => {
        if (!isInserted && params.query.includes('INTO sealed_turns')) {
          isInserted = true;
          await insert([{ ...first, version: 8, latencyMs: 1 }]);
        }
        return client.command(params);
      },
    } as unknown as ClickHouseClient;
    sealedDays = await load(interrupted);
    assert.equal(await sealedDays.sealBefore(SPAN.untilMs), 0);
    assert.deepEqual([isInserted, sealedDays.count], [true, 1]);
    await assertSameReport(ALL, 'inserted meanwhile');
    await sealedDays.sealBefore(SPAN.untilMs);
    await assertSameReport(ALL, 'sealed again');
  });

  test('of the present day the hours that are over are sealed, and read with the facts after them', async () => {
    const noonMs = SPAN.untilMs - 12 * HOUR_MS;
    const [morning, evening] = [facts.filter(isIn(noonMs - 12 * HOUR_MS, noonMs)), facts.filter(isIn(noonMs))];
    await insert([...morning, ...evening]);
    const sealUntilNoon = () => sealedDays.sealBefore(noonMs + HOUR_MS / 2);
    assert.deepEqual([await sealUntilNoon(), await sealUntilNoon()], [1, 0]);
    assert.deepEqual(await openOf(ALL), [
      { fromMs: SPAN.fromMs, untilMs: noonMs - 12 * HOUR_MS },
      { fromMs: noonMs, untilMs: SPAN.untilMs },
    ]);
    assert.equal(await openOf({ ...ALL, window: { ...ALL.window, untilMs: noonMs - HOUR_MS } }), undefined);
    // What comes to the evening leaves the morning sealed; what comes to the morning opens it.
    await insert(evening.slice(0, 3).map((fact) => ({ ...fact, version: 9, latencyMs: 1 })));
    assert.equal(sealedDays.count, 1);
    await assertSameReport(ALL, 'another evening');
    await insert(morning.slice(0, 3).map((fact) => ({ ...fact, version: 9, latencyMs: 1 })));
    assert.equal(sealedDays.count, 0);
    assert.equal(await sealUntilNoon(), 1);
    // An hour later the whole is made anew. It ends with the process.
    assert.equal(await sealedDays.sealBefore(noonMs + HOUR_MS), 1);
    await assertSameReport(ALL, 'an hour later');
    sealedDays = await load();
    assert.equal(sealedDays.count, 0);
    await sealUntilNoon();
    assert.equal(await countCells('uniqExact(seal)'), 1, 'the cells of former seals are gone');
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

  const damaged = 'cells that are damaged are found by the job that compares them, and the day is sealed anew';
  test(damaged, AT_LENGTH_ONLY, async () => {
    const [day, endMs] = [SPAN.fromMs / DAY_MS, SPAN.fromMs + DAY_MS];
    await insert(facts.filter(isIn(SPAN.fromMs, endMs)));
    await sealedDays.sealBefore(endMs);
    const compareAt = (hour: number) =>
      compareCells({
        sealedDays: () => sealedDays,
        clock: { nowMs: () => SPAN.untilMs + hour * HOUR_MS, monotonicMs: () => 0 },
        log: silentLog,
      } as unknown as JobContext);
    const tables = SEALED_CELLS.map(({ table }) => table).slice(0, howMany({ short: 1, long: 6 }));
    assert.deepEqual(await compareAt(day % 24), { compared: 1, damaged: [], drift: 0 });
    assert.deepEqual(await compareAt((day + 1) % 24), { compared: 0, damaged: [], drift: 0 });
    // Those of all organizations are lost; or there are cells twice.
    const damages = [
      [tables, (table: string) => `DELETE FROM ${table} WHERE organization_id = '${ALL_ORGANIZATIONS}'`],
      [['sealed_groups'], (table: string) => `INSERT INTO ${table} SELECT * FROM ${table}`],
    ] as const;
    for (const [found, damage] of damages.slice(0, howMany({ short: 1, long: 2 }))) {
      for (const table of found) await clickhouse.client.command({ query: damage(table) });
      const damaged = [{ day: '2026-10-31', tables: found }];
      assert.deepEqual(await compareAt(day % 24), { compared: 1, damaged, drift: 1 });
      await assertSameReport(ALL, 'opened');
      assert.equal(await sealedDays.sealBefore(endMs), 1);
    }
    assert.deepEqual(await compareAt(day % 24), { compared: 1, damaged: [], drift: 0 });
  });

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
    // Ten minutes after its end the last hour has not settled, so that its day is sealed without it.
    const TEN_MINUTES_MS = HOUR_MS / 6;
    assert.deepEqual(await sealDays(contextAt(SPAN.untilMs + TEN_MINUTES_MS, null)), { sealed: 2 });
    assert.deepEqual(await sealDays(contextAt(SPAN.untilMs + 2 * TEN_MINUTES_MS, null)), { sealed: 1 });
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
