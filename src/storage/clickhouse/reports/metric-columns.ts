// The columns of metrics, over facts and merged, and how a merged row is read. Counts are one array and exact sums
// another: the engine plans a statement by the column, and a day's report takes as long as its statements take to plan.

import type { SqlColumn } from './sql-column.ts';

export interface Metric {
  readonly name: string;
  /** The aggregate over facts. An exact sum is a Decimal(38, 12). */
  readonly state: string;
  /**
   * How states become the figure: added up as an integer, added up and given as decimal text, which no float touches,
   * or by SQL of its own.
   */
  readonly merge: 'count' | 'exact sum' | ((state: string) => string);
}

/** A row of the merged columns, parsed from JSON. What else was selected with them is the rest of it. */
export interface MergedRow {
  readonly m_counts: readonly number[];
  readonly m_exact_sums: readonly string[];
}

/** `Row` has `m_` and the name of each metric. */
export class MetricColumns<Row> {
  /** What is kept of the facts that a row stands for. */
  readonly states: readonly SqlColumn[];
  private readonly counts: readonly string[];
  private readonly exactSums: readonly string[];
  private readonly merged: string;

  constructor(metrics: readonly Metric[]) {
    const own = metrics.flatMap(({ name, state, merge }) =>
      typeof merge === 'string' ? [] : [{ name, state, merged: merge(`state_${name}`) }],
    );
    const counts = metrics.filter(({ merge }) => merge === 'count');
    const exactSums = metrics.filter(({ merge }) => merge === 'exact sum');
    this.counts = counts.map(({ name }) => name);
    this.exactSums = exactSums.map(({ name }) => name);
    this.states = [
      ['counts', `[${counts.map(({ state }) => state).join(', ')}]`],
      ['exact_sums', `[${exactSums.map(({ state }) => state).join(', ')}]`],
      ...own.map(({ name, state }) => [`state_${name}`, state] as const),
    ];
    this.merged = [
      'sumForEach(counts) AS m_counts',
      'sumForEach(exact_sums) AS m_exact_sums',
      ...own.map(({ name, merged }) => `${merged} AS m_${name}`),
    ].join(', ');
  }

  /** The select list that merges rows of `states`. */
  checkedMerged(): string {
    return this.merged;
  }

  /** One count or exact sum of a row of `states`, in SQL. */
  checkedState(name: string): string {
    for (const [column, names] of [
      ['counts', this.counts],
      ['exact_sums', this.exactSums],
    ] as const) {
      const index = names.indexOf(name);
      if (index !== -1) return `${column}[${index + 1}]`;
    }
    throw new Error(`no count and no exact sum: ${name}`);
  }

  rowOf<Selected extends object>({ m_counts, m_exact_sums, ...row }: Selected & MergedRow): Selected & Row {
    const metrics = { ...named(this.counts, m_counts, 0), ...named(this.exactSums, m_exact_sums, '0') };
    return { ...row, ...metrics } as unknown as Selected & Row;
  }
}

/** What was merged of no rows at all is an empty array, and means `nothing`. */
function named<Value>(names: readonly string[], values: readonly Value[], nothing: Value): Record<string, Value> {
  if (values.length !== 0 && values.length !== names.length)
    throw new Error(`${values.length} values for ${names.join(', ')}`);
  return Object.fromEntries(names.map((name, index) => [`m_${name}`, values[index] ?? nothing]));
}
