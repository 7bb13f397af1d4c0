// Makes the cells of a sealed day, compares them with the facts, and removes cells that no report reads. The cells have
// everything that a routing report needs without a filter, or with a filter by status.

import { createHash, randomUUID } from 'node:crypto';
import { type ClickHouseClient, selectRows } from '../clickhouse.ts';
import { type CellSum, type Cells, checkedSealing, SEALED_STRETCH } from './cells.ts';
import { ALL_ORGANIZATIONS } from './report-params.ts';
import { CORRECTION_CELLS, TURN_CELLS } from './routing-conversations.ts';
import { FACET_CELLS } from './routing-facets.ts';
import { groupCells } from './routing-groups.ts';
import { REJECTION_CELLS } from './routing-rejections.ts';
import { SERIES_CELLS } from './routing-series.ts';

/** The sealed part of a day. */
export interface Seal {
  /** Marks the cells of the seal. */
  readonly id: string;
  /** The day, in UTC. */
  readonly date: string;
  /** Exclusive: the end of the day, or of one of its hours. */
  readonly untilMs: number;
  /** The organizations that have cells of their own. */
  readonly organizations: ReadonlySet<string>;
}

/** At most this many organizations get cells of their own in a seal: those with most facts. */
const ORGANIZATIONS_MAX = 100;

export const SEALED_CELLS: readonly Cells[] = [
  SERIES_CELLS,
  groupCells('every value'),
  FACET_CELLS,
  TURN_CELLS,
  REJECTION_CELLS,
  CORRECTION_CELLS,
];

/** Identifies the statements that make cells. Cells of another version's statements are not read. */
export const CELLS_DEFINITION = createHash('sha256')
  .update(SEALED_CELLS.map((cells) => checkedSealing(cells)).join('\n'))
  .digest('hex');

/** Stores the cells of a seal. If facts of its stretch change meanwhile, the caller must not use the seal. */
export async function makeCells(
  client: ClickHouseClient,
  of: { readonly date: string; readonly untilMs: number; readonly organizationFactsMin: number },
): Promise<Seal> {
  const stretch = { day: of.date, until_ms: of.untilMs };
  const rows = await selectRows<{ id: string }>(
    client,
    `SELECT toString(organization_id) AS id FROM request_facts
      WHERE ${SEALED_STRETCH}
      GROUP BY organization_id HAVING count() >= {facts_min:UInt32}
      ORDER BY count() DESC, id LIMIT ${ORGANIZATIONS_MAX}`,
    { ...stretch, facts_min: of.organizationFactsMin },
  );
  const id = randomUUID();
  const organizations = rows.map((row) => row.id);
  for (const cells of SEALED_CELLS) {
    await client.command({ query: checkedSealing(cells), query_params: { ...stretch, seal: id, organizations } });
  }
  return { id, date: of.date, untilMs: of.untilMs, organizations: new Set(organizations) };
}

/** Returns the tables in which the seal's cells do not add up to its facts, or cannot be read. */
export async function findDamagedCells(client: ClickHouseClient, seal: Seal): Promise<string[]> {
  const organizations = [...seal.organizations];
  const facts = await selectRows<Summed & { readonly sums: readonly (readonly string[])[] }>(
    client,
    `SELECT toString(arrayJoin(if(has({organizations:Array(UUID)}, organization_id),
         [toUUID('${ALL_ORGANIZATIONS}'), organization_id], [toUUID('${ALL_ORGANIZATIONS}')]))) AS cells_of,
       [${SEALED_CELLS.map(({ sums }) => checkedSums(sums, 0)).join(', ')}] AS sums
     FROM request_facts FINAL
     WHERE ${SEALED_STRETCH}
     GROUP BY cells_of`,
    { day: seal.date, until_ms: seal.untilMs, organizations },
  );
  const damaged: string[] = [];
  for (const [index, { table, sums }] of SEALED_CELLS.entries()) {
    const cells = await selectRows<Summed & { readonly sums: readonly string[] }>(
      client,
      `SELECT toString(organization_id) AS cells_of, ${checkedSums(sums, 1)} AS sums FROM ${checkedTable(table)}
       WHERE day = {day:Date} AND seal = {seal:UUID} GROUP BY cells_of`,
      { day: seal.date, seal: seal.id },
    ).catch(() => null);
    const expected = facts.map((row) => ({ cells_of: row.cells_of, sums: row.sums[index] ?? [] }));
    if (cells === null || textOf(cells) !== textOf(expected)) damaged.push(table);
  }
  return damaged;
}

interface Summed {
  readonly cells_of: string;
}

/** The sums over facts (`of` 0) or over cells (1). They are text, because amounts and counts can have any size. */
function checkedSums(sums: readonly CellSum[], of: 0 | 1): string {
  return `[${sums.map((sum) => `toString(${sum[of]})`).join(', ')}]`;
}

/** Leaves out rows whose sums are all 0, because there are no cells for them. */
function textOf(rows: readonly (Summed & { readonly sums: readonly string[] })[]): string {
  return rows
    .filter(({ sums }) => sums.some((sum) => sum !== '0'))
    .map(({ cells_of, sums }) => [cells_of, ...sums].join(' '))
    .sort()
    .join('\n');
}

export async function removeCellsExcept(client: ClickHouseClient, seals: readonly string[]): Promise<void> {
  for (const { table } of SEALED_CELLS) {
    const [left] = await selectRows<{ is_any: number }>(
      client,
      `SELECT count() > 0 AS is_any FROM ${checkedTable(table)} WHERE seal NOT IN {seals:Array(UUID)}`,
      { seals },
    );
    if (left?.is_any !== 1) continue;
    await client.command({
      query: `DELETE FROM ${checkedTable(table)} WHERE seal NOT IN {seals:Array(UUID)}`,
      query_params: { seals },
    });
  }
}

/** The name is that of one of `SEALED_CELLS`. The name of a table cannot be a parameter. */
function checkedTable(table: string): string {
  return table;
}
