// Sealed days: whole days in UTC whose cells (reports/cells.ts) are kept, so that reports need not read their facts.
// This owns which days are sealed, makes their cells, and opens a day again before a fact of it is inserted.
//
// It is for the embedded engine, which one process has alone: all facts are inserted, and all months dropped, within
// `whileOpen` of the one object of this class. The table of sealed days is written before what it says could become
// wrong, so a process that is killed anywhere leaves no day sealed whose cells are not those of its facts.

import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../platform/durations.ts';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';
import { checkedSealing } from './reports/cells.ts';
import { ALL_ORGANIZATIONS, type ReportParams, type SealedCover } from './reports/report-params.ts';
import { CELLS_DEFINITION, SEALED_CELLS } from './reports/sealed-cells.ts';

/** Of the days since 1970. */
export type DayNumber = number;

export interface SealingLimits {
  /** An organization with fewer facts in a day has no cells of its own: they would be hardly fewer than its facts. */
  readonly organizationFactsMin: number;
}

const LIMITS: SealingLimits = { organizationFactsMin: 2_000 };
const ORGANIZATIONS_MAX = 100;
/** In the row of a day that is open. */
const NO_SEAL = '00000000-0000-0000-0000-000000000000';
/** How far back days are sealed. */
const SEALED_DAYS_MAX = 400;

interface Seal {
  /** Marks its cells. */
  readonly id: string;
  /** Those that have cells of their own. */
  readonly organizations: ReadonlySet<string>;
}

export interface SealedDaysClients {
  /** Where facts are inserted. */
  readonly facts: ClickHouseClient;
  /** Where reports are read: making cells takes as long as one. */
  readonly reports: ClickHouseClient;
}

export class SealedDays {
  private readonly clients: SealedDaysClients;
  private readonly limits: SealingLimits;
  private readonly days: Map<DayNumber, Seal>;
  /** Days that may be sealed on disk: also by another version, or by a write whose end nobody saw. */
  private readonly sealedOnDisk: Set<DayNumber>;
  private lastNumber: number;
  /** How many inserts are under way, by the days of their facts. */
  private readonly inserting = new Map<DayNumber, number>();
  private sealing: { readonly day: DayNumber; readonly done: Promise<void> } | null = null;
  private isSealing = false;
  private isStopped = false;
  private reports = 0;
  /** Cells may be left of a seal that does not count any more, or never did. */
  private hasLeftovers = true;

  private constructor(clients: SealedDaysClients, limits: SealingLimits, rows: readonly SealRow[]) {
    const sealed = rows.filter(({ is_sealed }) => is_sealed);
    this.clients = clients;
    this.limits = limits;
    this.days = new Map(
      sealed
        .filter(({ definition }) => definition === CELLS_DEFINITION)
        .map(({ day_number, seal, organizations }) => [
          day_number,
          { id: seal, organizations: new Set(organizations) },
        ]),
    );
    this.sealedOnDisk = new Set(sealed.map(({ day_number }) => day_number));
    this.lastNumber = rows.reduce((last, { row_number }) => Math.max(last, row_number), 0);
  }

  static async load(clients: SealedDaysClients, limits: SealingLimits = LIMITS): Promise<SealedDays> {
    const rows = await selectRows<SealRow>(
      clients.facts,
      `SELECT toUInt32(day) AS day_number, toFloat64(number) AS row_number, is_sealed, seal, organizations, definition
         FROM sealed_days FINAL`,
    );
    return new SealedDays(clients, limits, rows);
  }

  get count(): number {
    return this.days.size;
  }

  /** Runs a change of the facts of some days; these are open before it begins, and not sealed until it has ended. */
  async whileOpen<Result>(days: ReadonlySet<DayNumber>, change: () => Promise<Result>): Promise<Result> {
    while (this.sealing !== null && days.has(this.sealing.day)) await this.sealing.done;
    for (const day of days) this.inserting.set(day, (this.inserting.get(day) ?? 0) + 1);
    try {
      await this.open([...days].filter((day) => this.sealedOnDisk.has(day)));
      return await change();
    } finally {
      for (const day of days) this.endInserting(day);
    }
  }

  private endInserting(day: DayNumber): void {
    const left = (this.inserting.get(day) ?? 1) - 1;
    if (left === 0) this.inserting.delete(day);
    else this.inserting.set(day, left);
  }

  /** A report that has begun reads the cells on: they are what the facts were when it began. */
  private async open(days: readonly DayNumber[]): Promise<void> {
    if (days.length === 0) return;
    await this.record(
      this.clients.facts,
      days.map((day) => ({ day, seal: null })),
    );
    for (const day of days) {
      this.days.delete(day);
      this.sealedOnDisk.delete(day);
    }
    this.hasLeftovers = true;
  }

  /** Runs a report with what of its window is sealed. A report with filters reads the facts. */
  async reading<Result>(params: ReportParams, report: (params: ReportParams) => Promise<Result>): Promise<Result> {
    this.reports += 1;
    try {
      const sealed = this.coverOf(params);
      return await report(sealed === null ? params : { ...params, sealed });
    } finally {
      this.reports -= 1;
    }
  }

  private coverOf({ scope, filters, window, showsRefused }: ReportParams): SealedCover | null {
    const { organizationId: ofFilter, ...otherFilters } = filters;
    const { organizationId: ofScope, ...otherScope } = scope;
    const organizationId = ofScope ?? ofFilter ?? null;
    const narrowing = Object.values({ ...otherScope, ...otherFilters, showsRefused });
    if (narrowing.some((value) => value !== undefined)) return null;
    if (ofFilter !== undefined && ofFilter !== organizationId) return null;
    const open: { fromMs: number; untilMs: number }[] = [];
    const covered: { readonly day: DayNumber; readonly seal: Seal }[] = [];
    let fromMs = window.fromMs;
    for (let day = Math.ceil(window.fromMs / DAY_MS); (day + 1) * DAY_MS <= window.untilMs; day++) {
      const seal = this.days.get(day);
      if (seal === undefined || !(organizationId === null || seal.organizations.has(organizationId))) continue;
      if (fromMs < day * DAY_MS) open.push({ fromMs, untilMs: day * DAY_MS });
      fromMs = (day + 1) * DAY_MS;
      covered.push({ day, seal });
    }
    const [first, last] = [covered[0], covered.at(-1)];
    if (first === undefined || last === undefined) return null;
    if (fromMs < window.untilMs) open.push({ fromMs, untilMs: window.untilMs });
    return {
      cellsOf: organizationId ?? ALL_ORGANIZATIONS,
      seals: covered.map(({ seal }) => seal.id),
      firstDay: dateOf(first.day),
      lastDay: dateOf(last.day),
      open,
    };
  }

  /** Seals days with facts that ended before an instant, the latest first, until it is over. Returns how many. */
  async sealBefore(beforeMs: number, isOver: () => boolean = () => false): Promise<number> {
    if (this.isSealing) return 0;
    this.isSealing = true;
    try {
      return await this.sealEachBefore(beforeMs, isOver);
    } finally {
      this.isSealing = false;
    }
  }

  /** No further day is begun. */
  stopSealing(): void {
    this.isStopped = true;
  }

  private async sealEachBefore(beforeMs: number, isOver: () => boolean): Promise<number> {
    if (this.hasLeftovers && this.reports === 0) await this.removeLeftovers();
    const untilDay = Math.floor(beforeMs / DAY_MS);
    const firstDay = Math.max(await this.firstDayOfFacts(untilDay), untilDay - SEALED_DAYS_MAX);
    let sealed = 0;
    for (let day = untilDay - 1; day >= firstDay && !this.isStopped && !isOver(); day--) {
      if (!this.days.has(day) && (await this.seal(day))) sealed += 1;
    }
    return sealed;
  }

  /** `untilDay` where there are none. */
  private async firstDayOfFacts(untilDay: DayNumber): Promise<DayNumber> {
    const [row] = await selectRows<{ first_day: number; is_empty: number }>(
      this.clients.reports,
      'SELECT toUInt32(toDate(min(admitted_at))) AS first_day, count() = 0 AS is_empty FROM request_facts',
    );
    return row === undefined || row.is_empty === 1 ? untilDay : row.first_day;
  }

  /** False: facts of the day are being inserted. */
  private async seal(day: DayNumber): Promise<boolean> {
    if (this.inserting.has(day)) return false;
    const done = Promise.withResolvers<void>();
    this.sealing = { day, done: done.promise };
    try {
      const made = await this.makeCells(day);
      this.sealedOnDisk.add(day);
      await this.record(this.clients.reports, [{ day, seal: made }]);
      this.days.set(day, made);
      return true;
    } catch (error) {
      this.hasLeftovers = true;
      throw error;
    } finally {
      this.sealing = null;
      done.resolve();
    }
  }

  private async makeCells(day: DayNumber): Promise<Seal> {
    const { reports } = this.clients;
    const of = { day: dateOf(day) };
    const rows = await selectRows<{ id: string }>(
      reports,
      `SELECT toString(organization_id) AS id FROM request_facts
        WHERE admitted_at >= toDateTime64({day:Date}, 3, 'UTC') AND admitted_at < toDateTime64({day:Date} + 1, 3, 'UTC')
        GROUP BY organization_id HAVING count() >= {facts_min:UInt32}
        ORDER BY count() DESC, id LIMIT ${ORGANIZATIONS_MAX}`,
      { ...of, facts_min: this.limits.organizationFactsMin },
    );
    const id = randomUUID();
    const organizations = rows.map((row) => row.id);
    for (const cells of SEALED_CELLS) {
      await reports.command({ query: checkedSealing(cells), query_params: { ...of, seal: id, organizations } });
    }
    return { id, organizations: new Set(organizations) };
  }

  private async record(
    client: ClickHouseClient,
    days: readonly { readonly day: DayNumber; readonly seal: Seal | null }[],
  ): Promise<void> {
    this.lastNumber += 1;
    const number = this.lastNumber;
    await client.insert({
      table: 'sealed_days',
      values: days.map(({ day, seal }) => ({
        day: dateOf(day),
        number,
        is_sealed: seal !== null,
        seal: seal?.id ?? NO_SEAL,
        organizations: [...(seal?.organizations ?? [])],
        definition: CELLS_DEFINITION,
      })),
      format: 'JSONEachRow',
    });
  }

  /** Nobody reads them: a report reads the cells of the seals that count when it begins. */
  private async removeLeftovers(): Promise<void> {
    this.hasLeftovers = false;
    const seals = [...this.days.values()].map(({ id }) => id);
    for (const { table } of SEALED_CELLS) {
      const [left] = await selectRows<{ is_any: number }>(
        this.clients.reports,
        `SELECT count() > 0 AS is_any FROM ${checkedTable(table)} WHERE seal NOT IN {seals:Array(UUID)}`,
        { seals },
      );
      if (left?.is_any !== 1) continue;
      await this.clients.reports.command({
        query: `DELETE FROM ${checkedTable(table)} WHERE seal NOT IN {seals:Array(UUID)}`,
        query_params: { seals },
      });
    }
  }
}

interface SealRow {
  readonly day_number: DayNumber;
  readonly row_number: number;
  readonly is_sealed: boolean;
  readonly seal: string;
  readonly organizations: readonly string[];
  readonly definition: string;
}

/** One of `SEALED_CELLS`: a name of a table cannot be a parameter. */
function checkedTable(table: string): string {
  return table;
}

function dateOf(day: DayNumber): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** The days of some instants in epoch milliseconds. */
export function daysOf(instants: Iterable<{ readonly admittedAtMs: number }>): Set<DayNumber> {
  const days = new Set<DayNumber>();
  for (const { admittedAtMs } of instants) days.add(Math.floor(admittedAtMs / DAY_MS));
  return days;
}
