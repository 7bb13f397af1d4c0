// Makes the SQL of the columns of `generations` from the table of record fields: how posting writes a record, and how a
// row is read back as a record.

import type { Kind } from '../../../records/field-types.ts';
import { FIELD_ROWS, type FieldName, USAGE_ROWS } from '../../../records/fields.ts';

interface ColumnSql {
  /** The SQL type of the value in the JSON that posting receives. */
  readonly type: string;
  /** The expression that turns that value into the column. */
  readonly write: (value: string) => string;
  /** The expression that turns the column into the value in a record's JSON. */
  readonly read: (column: string) => string;
}

const SAME = (sql: string): string => sql;

/** `usage` has several columns: see USAGE_ROWS. */
const SQL: Readonly<Record<Exclude<Kind, 'usage'>, ColumnSql>> = {
  uuid: { type: 'uuid', write: SAME, read: SAME },
  uuids: { type: 'uuid[]', write: SAME, read: SAME },
  text: { type: 'text', write: SAME, read: SAME },
  texts: { type: 'text[]', write: SAME, read: SAME },
  flag: { type: 'boolean', write: SAME, read: SAME },
  status: { type: 'integer', write: SAME, read: SAME },
  bytes: { type: 'bigint', write: SAME, read: (column) => `coalesce(${column}, 0)` },
  // Reading rounds to whole milliseconds. Otherwise binary fractions could move a fact by half a microsecond.
  instant: {
    type: 'double precision',
    write: (value) => `to_timestamp(${value} / 1000)`,
    read: (column) => `round(extract(epoch FROM ${column}) * 1000)::bigint`,
  },
  duration: { type: 'double precision', write: SAME, read: SAME },
  amount: { type: 'numeric', write: SAME, read: (column) => `${column}::text` },
  details: { type: 'jsonb', write: SAME, read: SAME },
  screening: { type: 'jsonb', write: SAME, read: SAME },
  failures: { type: 'jsonb', write: SAME, read: SAME },
  attempts: { type: 'jsonb', write: SAME, read: SAME },
  // The route is stored together with the cost at the baseline model. The amount is multiplied and not divided, because
  // a product keeps every digit.
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
  /** An expression over the columns of RECORD_COLUMNS. */
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

/** The columns of a record's JSON, named like its fields. */
export const RECORD_COLUMNS = [
  '"type" text',
  ...FIELD_ROWS.flatMap(([field, { type, places }]) => {
    if (type.kind === 'usage') return [`"${field}" json`];
    return places.postgres === undefined && field !== 'baselineCost' ? [] : [`"${field}" ${SQL[type.kind].type}`];
  }),
].join(', ');

/** The columns of an admitted record, then those of a terminal one; the epoch is the statement's first parameter. */
export const START_COLUMNS = ['epoch', ...START.map(({ name }) => name)].join(', ');
export const START_VALUES = ['$1::bigint', ...START.map(({ value }) => value)].join(', ');
export const ALL_COLUMNS = ['epoch', ...COLUMNS.map(({ name }) => name)].join(', ');
export const ALL_VALUES = ['$1::bigint', ...COLUMNS.map(({ value }) => value)].join(', ');

/** The terminal record replaces everything of the admitted one: for example, another provider may have served. */
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
 * Expression for a row as a terminal record. Optional fields that are not known are left out. A route is kept as it is,
 * with its nulls.
 */
export const AS_RECORD = `jsonb_build_object('type', 'terminal', ${readsOf(false)})
  || (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(jsonb_build_object(${readsOf(true)}))
      WHERE value <> 'null')`;
