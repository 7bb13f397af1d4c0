// The fields of a record as columns of `generations`, made from the table of fields: how posting writes them, and how a
// row is read back as a record.

import type { Kind } from '../../../records/field-types.ts';
import { FIELD_ROWS, type FieldName, USAGE_ROWS } from '../../../records/fields.ts';

interface ColumnSql {
  /** Of the value in the JSON that posting is given. */
  readonly type: string;
  /** From that value to the column. */
  readonly write: (value: string) => string;
  /** From the column to the value in a record's JSON. */
  readonly read: (column: string) => string;
}

const SAME = (sql: string): string => sql;

/** `usage` is several columns: see USAGE_ROWS. */
const SQL: Readonly<Record<Exclude<Kind, 'usage'>, ColumnSql>> = {
  uuid: { type: 'uuid', write: SAME, read: SAME },
  uuids: { type: 'uuid[]', write: SAME, read: SAME },
  text: { type: 'text', write: SAME, read: SAME },
  texts: { type: 'text[]', write: SAME, read: SAME },
  flag: { type: 'boolean', write: SAME, read: SAME },
  status: { type: 'integer', write: SAME, read: SAME },
  bytes: { type: 'bigint', write: SAME, read: (column) => `coalesce(${column}, 0)` },
  // Milliseconds come back whole: rounding half a microsecond of binary fraction must not move a fact.
  instant: {
    type: 'double precision',
    write: (value) => `to_timestamp(${value} / 1000)`,
    read: (column) => `round(extract(epoch FROM ${column}) * 1000)::bigint`,
  },
  duration: { type: 'double precision', write: SAME, read: SAME },
  amount: { type: 'numeric', write: SAME, read: (column) => `${column}::text` },
  // With the cost at the baseline model. Multiplied, not divided: a product keeps every digit.
  route: {
    type: 'jsonb',
    write: (value) => `${value} || CASE WHEN "baselineCost" IS NULL THEN '{}'
      ELSE jsonb_build_object('baseline_cost_usd', trim_scale("baselineCost" * 0.000000000001)::text) END`,
    read: (column) => `${column} - 'baseline_cost_usd'`,
  },
};

const READ_BASELINE_COST = `((model_route ->> 'baseline_cost_usd')::numeric * 1000000000000)::numeric(38, 0)::text`;

interface Column {
  readonly field: FieldName;
  readonly name: string;
  /** Over the columns of RECORD_COLUMNS. */
  readonly value: string;
  readonly isOfStart: boolean;
}

const COLUMNS = FIELD_ROWS.flatMap(([field, { type, part, places }]): Column[] => {
  const isOfStart = part === 'caller' || part === 'deployment' || part === 'start';
  if (type.kind === 'usage')
    return USAGE_ROWS.flatMap(([count, { postgres }]) =>
      postgres === undefined
        ? []
        : [{ field, name: postgres, value: `("${field}" ->> '${count}')::bigint`, isOfStart }],
    );
  const { postgres } = places;
  return postgres === undefined
    ? []
    : [{ field, name: postgres, value: SQL[type.kind].write(`"${field}"`), isOfStart }];
});
const START = COLUMNS.filter(({ isOfStart }) => isOfStart);

/** A record's JSON as columns, which have the names of its fields. */
export const RECORD_COLUMNS = [
  '"type" text',
  ...FIELD_ROWS.flatMap(([field, { type, places }]) => {
    if (type.kind === 'usage') return [`"${field}" json`];
    return places.postgres === undefined && field !== 'baselineCost' ? [] : [`"${field}" ${SQL[type.kind].type}`];
  }),
].join(', ');

/** What an admitted record, and then what a terminal one says; the epoch is the statement's first parameter. */
export const START_COLUMNS = ['epoch', ...START.map(({ name }) => name)].join(', ');
export const START_VALUES = ['$1::bigint', ...START.map(({ value }) => value)].join(', ');
export const ALL_COLUMNS = ['epoch', ...COLUMNS.map(({ name }) => name)].join(', ');
export const ALL_VALUES = ['$1::bigint', ...COLUMNS.map(({ value }) => value)].join(', ');

/** The terminal record knows all better than the admitted one: who served may have changed on the way. */
export const CHANGES = COLUMNS.filter(({ name }) => name !== 'id')
  .map(({ name }) => `${name} = excluded.${name}`)
  .join(', ');

const READ_USAGE = `CASE WHEN usage_source IS NOT NULL THEN jsonb_build_object(
  ${USAGE_ROWS.map(([count, { postgres }]) => `'${count}', ${postgres ?? 'NULL'}`).join(', ')}) END`;

function readsOf(isOptional: boolean): string {
  return FIELD_ROWS.filter(([, field]) => field.isOptional === isOptional)
    .flatMap(([field, { type, places }]) => {
      if (type.kind === 'usage') return [`'${field}', ${READ_USAGE}`];
      if (field === 'baselineCost') return [`'${field}', ${READ_BASELINE_COST}`];
      return places.postgres === undefined ? [] : [`'${field}', ${SQL[type.kind].read(places.postgres)}`];
    })
    .join(', ');
}

/**
 * A row as a terminal record, which has only those optional fields that are known. What lies within a route stays as it
 * is, its nulls as well.
 */
export const AS_RECORD = `jsonb_build_object('type', 'terminal', ${readsOf(false)})
  || (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(jsonb_build_object(${readsOf(true)}))
      WHERE value <> 'null')`;
