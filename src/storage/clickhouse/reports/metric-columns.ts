// Makes the SQL columns of a list of metrics, over facts and merged, and reads merged rows. All counts are in one array
// column and all exact sums in another, because planning takes time for each column, and a report of a day takes hardly
// longer than its statements take to plan.

import type { SqlColumn } from './sql-column.ts';

export interface Metric {
  readonly name: string;
  /** The aggregate over facts. An exact sum is a Decimal(38, 12). */
  readonly state: string;
  /**
   * How states are merged into the figure. `count`: added up as an integer. `exact sum`: added up and returned as
   * decimal text, which no float touches. A function: by its SQL.
   */
  readonly merge: 'count' | 'exact sum' | ((state: string) => string);
}

/** A merged row, parsed from JSON. It also has the columns that were selected beside the merged ones. */
export interface MergedRow {
  readonly m_counts: readonly number[];
  readonly m_exact_sums: readonly string[];
}

/** `Row` has a member for each metric: `m_` and its name. */
export class MetricColumns<Row> {
  /** The select list over facts. A row of it stands for several facts, and has the state of each metric over them. */
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

/** The merge of no rows is an empty array: each metric is then `nothing`. */
function named<Value>(names: readonly string[], values: readonly Value[], nothing: Value): Record<string, Value> {
  if (values.length !== 0 && values.length !== names.length)
    throw new Error(`${values.length} values for ${names.join(', ')}`);
  return Object.fromEntries(names.map((name, index) => [`m_${name}`, values[index] ?? nothing]));
}
