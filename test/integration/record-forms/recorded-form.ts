// A form of records as it was written down: its fields, a spool in it, and what was shipped of that.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FormDescription {
  readonly fields: readonly {
    readonly name: string;
    readonly part: string;
    readonly isOptional: boolean;
    readonly kind: string;
    readonly isNullable: boolean;
  }[];
  /** The counts of a usage, which are told by their place. */
  readonly usage: readonly string[];
}

export type Row = Readonly<Record<string, unknown>>;

export interface Shipped {
  readonly organizationId: string;
  readonly walletId: string;
  /** How many the wallet must have room for at once. */
  readonly executions: number;
  /** Of the wallet in the end. */
  readonly balance: string;
  readonly generations: readonly Row[];
  readonly facts: readonly Row[];
}

export interface RecordedForm {
  readonly form: number;
  readonly directory: string;
  readonly description: FormDescription;
  readonly shipped: Shipped;
}

/** All that were written down, the oldest first. */
export function readRecordedForms(): RecordedForm[] {
  return readdirSync(import.meta.dirname)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b)
    .map((form) => {
      const directory = join(import.meta.dirname, String(form));
      const read = <Content>(file: string): Content =>
        JSON.parse(readFileSync(join(directory, file), 'utf8')) as Content;
      return {
        form,
        directory,
        description: read<FormDescription>('fields.json'),
        shipped: read<Shipped>('shipped.json'),
      };
    });
}

/** A row without what is another's in each database. */
export function withoutChance({ epoch: _epoch, ...row }: Row): Row {
  return row;
}

/** Of the fields that a checkout's table has. */
export function describeForm(
  fieldRows: typeof import('../../../src/records/fields.ts').FIELD_ROWS,
  usageRows: typeof import('../../../src/records/fields.ts').USAGE_ROWS,
): FormDescription {
  return {
    fields: fieldRows.map(([name, { type, part, isOptional }]) => ({
      name,
      part,
      isOptional,
      kind: type.kind,
      isNullable: type.isNullable,
    })),
    usage: usageRows.map(([name]) => name),
  };
}
