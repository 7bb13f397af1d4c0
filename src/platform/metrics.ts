// Counters, gauges and histograms of one process, and their merging over processes for /metrics (Prometheus text format
// 0.0.4).
//
// Labels come from closed sets and are resolved once, at start-up: `labels(...)` returns a cell, and counting is an
// addition to a field of it, with no hashing and no allocation. Keys, users and model names of callers are never label
// values.

import { assert } from './assert.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';

/**
 * How the values of several processes are combined: most gauges are added up; for an age or a lag the maximum counts.
 */
export type GaugeMerge = 'sum' | 'max';

/**
 * One series as plain data. For a histogram `values` has the bucket counts (not cumulative), then the total count, then
 * the sum.
 */
export interface SeriesSnapshot {
  readonly labelValues: readonly string[];
  readonly values: readonly number[];
}

export interface FamilySnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly merge: GaugeMerge;
  readonly labelNames: readonly string[];
  readonly buckets: readonly number[];
  readonly series: readonly SeriesSnapshot[];
}

/** Plain data that process.send can transfer. */
export type MetricsSnapshot = readonly FamilySnapshot[];

export class CounterCell {
  value = 0;
  increment(by = 1): void {
    this.value += by;
  }
}

export class GaugeCell {
  value = 0;
  set(value: number): void {
    this.value = value;
  }
  add(by: number): void {
    this.value += by;
  }
}

export class HistogramCell {
  private readonly buckets: readonly number[];
  /** The number of observations per bucket; the last bucket is above every bound. */
  readonly counts: Float64Array;
  sum = 0;
  constructor(buckets: readonly number[]) {
    this.buckets = buckets;
    this.counts = new Float64Array(buckets.length + 1);
  }
  /** There are few buckets and small values are common, so a linear search beats a binary one. */
  observe(value: number): void {
    const buckets = this.buckets;
    let index = 0;
    while (index < buckets.length && value > (buckets[index] as number)) index++;
    this.counts[index] = (this.counts[index] as number) + 1;
    this.sum += value;
  }
}

/**
 * If a label has more values than this, its set was not closed after all; further combinations are counted together as
 * `other`.
 */
const SERIES_MAX = 2000;

/**
 * `le` belongs to histograms. A scrape adds the others to every series, and Prometheus would rename a label of ours
 * that has the same name.
 */
const TAKEN_LABELS = new Set(['le', 'job', 'instance', 'namespace', 'pod', 'container', 'endpoint', 'service']);

type LabelValues<L extends readonly string[]> = { readonly [K in keyof L]: string };

/** All series of one metric. A family without labels has its only cell from the start, so that it is exported as 0. */
class Family<Cell, L extends readonly string[]> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: L;
  readonly cells = new Map<string, { labelValues: readonly string[]; cell: Cell }>();
  private readonly createCell: () => Cell;

  constructor(name: string, help: string, labelNames: L, createCell: () => Cell) {
    assert(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name), `metric name ${name} is not legal`);
    for (const label of labelNames) {
      assert(
        /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) && !label.startsWith('__') && !TAKEN_LABELS.has(label),
        `label name ${label} of ${name} is not legal`,
      );
    }
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    this.createCell = createCell;
    if (labelNames.length === 0) this.cellOf([]);
  }

  /** The cell of these label values, to be resolved once and kept. */
  labels(...values: LabelValues<L>): Cell {
    assert(
      values.length === this.labelNames.length,
      `metric ${this.name} takes ${this.labelNames.length} label values`,
    );
    return this.cellOf(values as readonly string[]);
  }

  private cellOf(labelValues: readonly string[]): Cell {
    const key = labelValues.join('\u0000');
    const known = this.cells.get(key);
    if (known !== undefined) return known.cell;
    if (this.cells.size >= SERIES_MAX && !labelValues.every((value) => value === 'other'))
      return this.cellOf(labelValues.map(() => 'other'));
    const cell = this.createCell();
    this.cells.set(key, { labelValues: [...labelValues], cell });
    return cell;
  }
}

export class Counter<L extends readonly string[] = readonly []> extends Family<CounterCell, L> {
  constructor(name: string, help: string, labelNames: L) {
    super(name, help, labelNames, () => new CounterCell());
  }
  /** Only for a counter without labels. */
  increment(this: Counter<readonly []>, by = 1): void {
    this.labels().increment(by);
  }
}

export class Gauge<L extends readonly string[] = readonly []> extends Family<GaugeCell, L> {
  readonly merge: GaugeMerge;
  /** Called when a snapshot is taken, for values that are cheaper to compute than to maintain. */
  readonly read: (() => number) | null;
  constructor(name: string, help: string, labelNames: L, merge: GaugeMerge, read: (() => number) | null) {
    super(name, help, labelNames, () => new GaugeCell());
    assert(read === null || labelNames.length === 0, `callback gauge ${name} cannot have labels`);
    this.merge = merge;
    this.read = read;
  }
  /** Only for a gauge without labels. */
  set(this: Gauge<readonly []>, value: number): void {
    this.labels().set(value);
  }
  /** Only for a gauge without labels. */
  add(this: Gauge<readonly []>, by: number): void {
    this.labels().add(by);
  }
}

export class Histogram<L extends readonly string[] = readonly []> extends Family<HistogramCell, L> {
  readonly buckets: readonly number[];
  constructor(name: string, help: string, buckets: readonly number[], labelNames: L) {
    assert(
      buckets.every(
        (bound, index) => Number.isFinite(bound) && (index === 0 || bound > (buckets[index - 1] as number)),
      ),
      `buckets of ${name} must grow`,
    );
    super(name, help, labelNames, () => new HistogramCell(buckets));
    this.buckets = buckets;
  }
  /** Only for a histogram without labels. */
  observe(this: Histogram<readonly []>, value: number): void {
    this.labels().observe(value);
  }
}

type AnyFamily = Counter<readonly string[]> | Gauge<readonly string[]> | Histogram<readonly string[]>;

export class MetricsRegistry {
  private readonly families = new Map<string, AnyFamily>();

  counter<const L extends readonly string[] = readonly []>(name: string, help: string, labelNames?: L): Counter<L> {
    return this.register(new Counter(name, help, labelNames ?? ([] as unknown as L)));
  }

  gauge<const L extends readonly string[] = readonly []>(
    name: string,
    help: string,
    options: { labelNames?: L; merge?: GaugeMerge; read?: () => number } = {},
  ): Gauge<L> {
    return this.register(
      new Gauge(name, help, options.labelNames ?? ([] as unknown as L), options.merge ?? 'sum', options.read ?? null),
    );
  }

  histogram<const L extends readonly string[] = readonly []>(
    name: string,
    help: string,
    bucketsSeconds: readonly number[],
    labelNames?: L,
  ): Histogram<L> {
    return this.register(new Histogram(name, help, bucketsSeconds, labelNames ?? ([] as unknown as L)));
  }

  private register<F>(family: F): F {
    const { name } = family as AnyFamily;
    assert(!this.families.has(name), `metric ${name} is registered twice`);
    this.families.set(name, family as AnyFamily);
    return family;
  }

  /** `names`: only these; no other gauge is read then. */
  snapshot(names?: ReadonlySet<string>): MetricsSnapshot {
    const wanted = [...this.families.values()].filter(({ name }) => names === undefined || names.has(name));
    return wanted.map(snapshotFamily);
  }

  render(): string {
    return MetricsRegistry.render(this.snapshot());
  }

  /**
   * Merges the snapshots of several processes. Families are matched by name; a process that lacks one (an older
   * version) adds nothing to it.
   */
  static merge(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
    const merged = new Map<
      string,
      { family: FamilySnapshot; series: Map<string, { labelValues: readonly string[]; values: number[] }> }
    >();
    for (const family of snapshots.flat()) {
      let target = merged.get(family.name);
      if (target === undefined) {
        target = { family, series: new Map() };
        merged.set(family.name, target);
      }
      // During a rolling restart two versions may disagree about a metric's shape. Adding unlike values would be wrong,
      // so the first shape wins.
      if (!sameShape(target.family, family)) continue;
      for (const { labelValues, values } of family.series) {
        const key = labelValues.join('\u0000');
        const known = target.series.get(key);
        if (known === undefined) target.series.set(key, { labelValues, values: [...values] });
        else
          for (const [index, value] of values.entries())
            known.values[index] = mergeValues(family, known.values[index] ?? 0, value);
      }
    }
    return [...merged.values()].map(({ family, series }) => ({ ...family, series: [...series.values()] }));
  }

  static render(snapshot: MetricsSnapshot): string {
    let text = '';
    for (const family of snapshot) {
      text += `# HELP ${family.name} ${escapeHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n`;
      for (const series of family.series)
        text += family.type === 'histogram' ? renderHistogram(family, series) : renderValue(family, series);
    }
    return text;
  }
}

function snapshotFamily(family: AnyFamily): FamilySnapshot {
  const { name, help, labelNames } = family;
  const common = { name, help, labelNames: [...labelNames] };
  if (family instanceof Histogram) {
    const series = [...family.cells.values()].map(({ labelValues, cell }) => ({
      labelValues,
      values: [...cell.counts, total(cell.counts), cell.sum],
    }));
    return { ...common, type: 'histogram', merge: 'sum', buckets: [...family.buckets], series };
  }
  if (family instanceof Gauge) {
    const series = [...family.cells.values()].map(({ labelValues, cell }) => ({
      labelValues,
      values: [family.read === null ? cell.value : family.read()],
    }));
    return { ...common, type: 'gauge', merge: family.merge, buckets: [], series };
  }
  const series = [...family.cells.values()].map(({ labelValues, cell }) => ({ labelValues, values: [cell.value] }));
  return { ...common, type: 'counter', merge: 'sum', buckets: [], series };
}

function total(counts: Float64Array): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

function sameShape(one: FamilySnapshot, other: FamilySnapshot): boolean {
  return (
    one.type === other.type &&
    one.labelNames.join() === other.labelNames.join() &&
    one.buckets.join() === other.buckets.join()
  );
}

function mergeValues(family: FamilySnapshot, one: number, other: number): number {
  return family.type === 'gauge' && family.merge === 'max' ? Math.max(one, other) : one + other;
}

function renderValue(family: FamilySnapshot, series: SeriesSnapshot): string {
  const labels = renderLabels(family.labelNames, series.labelValues);
  return `${family.name}${labels} ${renderNumber(series.values[0] ?? 0)}\n`;
}

function renderHistogram(family: FamilySnapshot, series: SeriesSnapshot): string {
  const names = [...family.labelNames, 'le'];
  let text = '';
  let cumulative = 0;
  for (const [index, bound] of [...family.buckets, Number.POSITIVE_INFINITY].entries()) {
    cumulative += series.values[index] ?? 0;
    const labels = renderLabels(names, [...series.labelValues, renderNumber(bound)]);
    text += `${family.name}_bucket${labels} ${renderNumber(cumulative)}\n`;
  }
  const labels = renderLabels(family.labelNames, series.labelValues);
  const sum = series.values[family.buckets.length + 2] ?? 0;
  text += `${family.name}_sum${labels} ${renderNumber(sum)}\n`;
  return `${text}${family.name}_count${labels} ${renderNumber(cumulative)}\n`;
}

function renderLabels(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return '';
  return `{${names.map((name, index) => `${name}="${escapeLabelValue(values[index] ?? '')}"`).join(',')}}`;
}

function renderNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabelValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
