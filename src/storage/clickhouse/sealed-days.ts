// Owns which days are sealed. A sealed day is a day in UTC whose cells (reports/cells.ts) are stored, so that reports
// read the cells and not the facts. Past days are sealed as a whole, and the present day up to the last hour that is
// over. This class has cells made and compared with the facts, and opens a day before a fact of it is inserted.
//
// Days are sealed only in the embedded engine, which one process has alone. All inserts of facts and all drops of
// months run within `whileOpen` of the only object of this class. A day is marked open in the table `sealed_days`
// before its facts change, so a process that is killed never leaves a sealed day whose cells differ from its facts. The
// seal of the present day is not in the table and ends with the process.

import { DAY_MS, HOUR_MS } from '../../platform/durations.ts';
import { type ClickHouseClient, selectRows } from './clickhouse.ts';
import { ALL_ORGANIZATIONS, type ReportParams, type SealedCover } from './reports/report-params.ts';
import { CELLS_DEFINITION, findDamagedCells, makeCells, removeCellsExcept, type Seal } from './reports/sealed-cells.ts';

/** Days since 1970-01-01 in UTC. */
export type DayNumber = number;

/** The days that a change of facts concerns, each with the earliest instant (epoch milliseconds) that changes. */
export type ChangedDays = ReadonlyMap<DayNumber, number>;

export interface SealingLimits {
  /** An organization with fewer facts in a seal gets no cells of its own, since it would have almost as many cells. */
  readonly organizationFactsMin: number;
}

const LIMITS: SealingLimits = { organizationFactsMin: 2_000 };
/** The seal id in the row of an open day. */
const NO_SEAL = '00000000-0000-0000-0000-000000000000';
/** How far back days are sealed. */
const SEALED_DAYS_MAX = 400;

export interface SealedDaysClients {
  /** The connection on which facts are inserted. */
  readonly facts: ClickHouseClient;
  /** The connection of reports. Cells are made on it, because that takes as long as a report. */
  readonly reports: ClickHouseClient;
}

export interface DamagedDay {
  /** The date in UTC. */
  readonly day: string;
  /** The tables whose cells differed from the facts. */
  readonly tables: readonly string[];
}

export interface ComparedDays {
  readonly compared: number;
  readonly damaged: readonly DamagedDay[];
}

export class SealedDays {
  private readonly clients: SealedDaysClients;
  private readonly limits: SealingLimits;
  private readonly days: Map<DayNumber, Seal>;
  /** Days that the table may show as sealed, including seals of another version and writes whose result is unknown. */
  private readonly sealedOnDisk: Set<DayNumber>;
  private lastNumber: number;
  /** The days of the changes that are under way. */
  private readonly changing = new Set<ChangedDays>();
  /** The seal that is being made. `isVoid`: facts of it have changed since, so that its cells may be wrong. */
  private sealing: { readonly day: DayNumber; readonly untilMs: number; isVoid: boolean } | null = null;
  private isSealing = false;
  private isStopped = false;
  private reports = 0;
  /** The tables may have cells of seals that no longer count, or never did. */
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
          { id: seal, date: dateOf(day_number), untilMs: endOf(day_number), organizations: new Set(organizations) },
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

  /**
   * Runs a change of facts. The sealed days that it concerns are opened before the change begins, and are not sealed
   * again before it has ended. A seal of such a day that is being made is not waited for, and will not count.
   */
  async whileOpen<Result>(changed: ChangedDays, change: () => Promise<Result>): Promise<Result> {
    const under = new Map(changed);
    this.changing.add(under);
    if (this.sealing !== null && concerns(under, this.sealing.day, this.sealing.untilMs)) this.sealing.isVoid = true;
    try {
      await this.open(under);
      return await change();
    } finally {
      this.changing.delete(under);
    }
  }

  /** A running report goes on reading the cells, which match the facts as they were when the report began. */
  private async open(changed: ChangedDays): Promise<void> {
    const onDisk = [...changed.keys()].filter((day) => this.sealedOnDisk.has(day));
    if (onDisk.length > 0) {
      await this.record(
        this.clients.facts,
        onDisk.map((day) => ({ day, seal: null })),
      );
    }
    for (const day of onDisk) this.sealedOnDisk.delete(day);
    for (const [day, seal] of this.days) {
      if (!concerns(changed, day, seal.untilMs)) continue;
      this.days.delete(day);
      this.hasLeftovers = true;
    }
  }

  /**
   * Runs a report with the sealed days of its window. A report that is narrowed by more than organization and status
   * reads the facts alone.
   */
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
    const { organizationId: ofFilter, status: _, ...otherFilters } = filters;
    const { organizationId: ofScope, ...otherScope } = scope;
    const organizationId = ofScope ?? ofFilter ?? null;
    const narrowing = Object.values({ ...otherScope, ...otherFilters, showsRefused });
    if (narrowing.some((value) => value !== undefined)) return null;
    if (ofFilter !== undefined && ofFilter !== organizationId) return null;
    const open: { fromMs: number; untilMs: number }[] = [];
    const covered: Seal[] = [];
    let fromMs = window.fromMs;
    for (let day = Math.ceil(window.fromMs / DAY_MS); day * DAY_MS < window.untilMs; day++) {
      const seal = this.days.get(day);
      if (seal === undefined || seal.untilMs > window.untilMs) continue;
      if (!(organizationId === null || seal.organizations.has(organizationId))) continue;
      if (fromMs < day * DAY_MS) open.push({ fromMs, untilMs: day * DAY_MS });
      fromMs = seal.untilMs;
      covered.push(seal);
    }
    const [first, last] = [covered[0], covered.at(-1)];
    if (first === undefined || last === undefined) return null;
    if (fromMs < window.untilMs) open.push({ fromMs, untilMs: window.untilMs });
    return {
      cellsOf: organizationId ?? ALL_ORGANIZATIONS,
      seals: covered.map(({ id }) => id),
      firstDay: first.date,
      lastDay: last.date,
      open,
    };
  }

  /**
   * Seals the days with facts up to the last whole hour before `beforeMs`, the latest day first, until `isOver` returns
   * true. Returns how many seals were made.
   */
  async sealBefore(beforeMs: number, isOver: () => boolean = () => false): Promise<number> {
    if (this.isSealing) return 0;
    this.isSealing = true;
    try {
      return await this.sealEachBefore(Math.floor(beforeMs / HOUR_MS) * HOUR_MS, isOver);
    } finally {
      this.isSealing = false;
    }
  }

  /** Begins no further day. */
  stopSealing(): void {
    this.isStopped = true;
  }

  private async sealEachBefore(beforeMs: number, isOver: () => boolean): Promise<number> {
    if (this.hasLeftovers && this.reports === 0) await this.removeLeftovers();
    const untilDay = Math.ceil(beforeMs / DAY_MS);
    const firstDay = Math.max(await this.firstDayOfFacts(untilDay), untilDay - SEALED_DAYS_MAX);
    let sealed = 0;
    for (let day = untilDay - 1; day >= firstDay && !this.isStopped && !isOver(); day--) {
      const untilMs = Math.min(endOf(day), beforeMs);
      const sealedUntilMs = this.days.get(day)?.untilMs ?? 0;
      if (sealedUntilMs < untilMs && (await this.seal(day, untilMs))) sealed += 1;
    }
    return sealed;
  }

  /** The first day that has facts; `untilDay` if there are no facts. */
  private async firstDayOfFacts(untilDay: DayNumber): Promise<DayNumber> {
    const [row] = await selectRows<{ first_day: number; is_empty: number }>(
      this.clients.reports,
      'SELECT toUInt32(toDate(min(admitted_at))) AS first_day, count() = 0 AS is_empty FROM request_facts',
    );
    return row === undefined || row.is_empty === 1 ? untilDay : row.first_day;
  }

  /** Returns false if facts of the day were being changed when the seal began, or changed while it was made. */
  private async seal(day: DayNumber, untilMs: number): Promise<boolean> {
    if ([...this.changing].some((changed) => concerns(changed, day, untilMs))) return false;
    const sealing = { day, untilMs, isVoid: false };
    this.sealing = sealing;
    try {
      const made = await makeCells(this.clients.reports, {
        date: dateOf(day),
        untilMs,
        organizationFactsMin: this.limits.organizationFactsMin,
      });
      if (untilMs === endOf(day) && !sealing.isVoid) {
        this.sealedOnDisk.add(day);
        await this.record(this.clients.reports, [{ day, seal: made }]);
      }
      this.hasLeftovers ||= sealing.isVoid || this.days.has(day);
      if (!sealing.isVoid) this.days.set(day, made);
      return !sealing.isVoid;
    } catch (error) {
      this.hasLeftovers = true;
      throw error;
    } finally {
      this.sealing = null;
    }
  }

  /**
   * Compares the cells of some days with their facts. A day whose cells differ is opened, so that reports read its
   * facts until it is sealed again.
   */
  async compare(isAsked: (day: DayNumber) => boolean): Promise<ComparedDays> {
    const asked = [...this.days].filter(([day]) => isAsked(day));
    const damaged: DamagedDay[] = [];
    for (const [day, seal] of asked) {
      const tables = await findDamagedCells(this.clients.reports, seal);
      // A day that was opened or sealed anew meanwhile has other facts than the comparison saw.
      if (tables.length === 0 || this.days.get(day) !== seal) continue;
      await this.open(new Map([[day, day * DAY_MS]]));
      damaged.push({ day: seal.date, tables });
    }
    return { compared: asked.length, damaged };
  }

  /** Of the rows of a day, the one with the highest number counts, in whatever order they were written. */
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

  /** Must begin while no report is running, since a report reads the cells of seals that counted when it began. */
  private async removeLeftovers(): Promise<void> {
    this.hasLeftovers = false;
    await removeCellsExcept(
      this.clients.reports,
      [...this.days.values()].map(({ id }) => id),
    );
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

/** Whether a change concerns what the seal of a day covers up to `untilMs`. */
function concerns(changed: ChangedDays, day: DayNumber, untilMs: number): boolean {
  return (changed.get(day) ?? Number.POSITIVE_INFINITY) < untilMs;
}

function endOf(day: DayNumber): number {
  return (day + 1) * DAY_MS;
}

function dateOf(day: DayNumber): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** The days of facts, each with the earliest admission in it. */
export function daysOf(instants: Iterable<{ readonly admittedAtMs: number }>): Map<DayNumber, number> {
  const days = new Map<DayNumber, number>();
  for (const { admittedAtMs } of instants) {
    const day = Math.floor(admittedAtMs / DAY_MS);
    days.set(day, Math.min(days.get(day) ?? admittedAtMs, admittedAtMs));
  }
  return days;
}
