// The generation record of spec 2.1 as JSON text, made from the table of fields. Money is written as exact JSON
// numbers, so the text is put together here and not by JSON.stringify.

import { formatUsdJsonNumber } from '../domain/money/format.ts';
import { picoUsd } from '../domain/money/pico-usd.ts';
import type { Kind } from './field-types.ts';
import { FIELD_ROWS, type FIELDS, type FieldName, type USAGE_FIELDS, USAGE_ROWS, type ValueOf } from './fields.ts';

type ShownField = {
  [Name in FieldName]: (typeof FIELDS)[Name]['places'] extends { readonly generation: string } ? Name : never;
}[FieldName];
type ShownCount = {
  [Name in keyof typeof USAGE_FIELDS]: (typeof USAGE_FIELDS)[Name] extends { readonly generation: string }
    ? Name
    : never;
}[keyof typeof USAGE_FIELDS];

/** What storage knows of an execution: amounts as a record has them; null where it is not known. */
export type Generation = { readonly [Name in ShownField]: ValueOf<Name> } & {
  readonly [Name in ShownCount]: number | null;
} & {
  /** The virtual model that the request named; null: it named the model that serves, or an alias of it. */
  readonly virtualModel: string | null;
  /** False: it was refused before a provider was chosen. */
  readonly hasProvider: boolean;
};

export interface ShownValue {
  readonly field: ShownField | ShownCount;
  /** Its name in the generation record. */
  readonly shownAs: string;
  readonly kind: Kind;
  /** Column of `generations`. */
  readonly column: string;
}

/** What is shown, in this order. */
export const SHOWN: readonly ShownValue[] = FIELD_ROWS.flatMap(([field, { type, places }]): ShownValue[] => {
  if (type.kind === 'usage')
    return USAGE_ROWS.flatMap(([count, { generation, postgres }]) =>
      generation === undefined || postgres === undefined
        ? []
        : [{ field: count as ShownCount, shownAs: generation, kind: 'bytes', column: postgres }],
    );
  const { generation, postgres } = places;
  if (generation === undefined || postgres === undefined) return [];
  return [{ field: field as ShownField, shownAs: generation, kind: type.kind, column: postgres }];
});

/**
 * A count or cost that is not known is left out: missing means unavailable, not zero (spec 2.1). `model` is the one
 * that was requested; where that is the virtual model, `routed_model` beside it is the one that served.
 */
export function renderGeneration(generation: Generation): string {
  const members: string[] = [];
  for (const { field, shownAs, kind } of SHOWN) {
    const value = field === 'charge' ? knownCharge(generation) : generation[field];
    if (field === 'model' && generation.virtualModel !== null) {
      members.push(`"model":${JSON.stringify(generation.virtualModel)},"routed_model":${textOf(kind, value)}`);
      continue;
    }
    // The request was refused before its model was read.
    if (field === 'model' && value === '') continue;
    if (value !== null) members.push(`"${shownAs}":${textOf(kind, value)}`);
    if (field === 'charge') members.push('"currency":"USD"');
    if (field === 'credentialId' && generation.hasProvider)
      members.push(`"credential_source":"${value === null ? 'service' : 'own'}"`);
  }
  return `{${members.join(',')}}`;
}

/** What is not billed costs its customer nothing, and that is known, as of what was cancelled. */
export function knownCharge({ charge, billingStatus }: Pick<Generation, 'charge' | 'billingStatus'>): string | null {
  return charge ?? (billingStatus === 'not_billed' ? '0' : null);
}

function textOf(kind: Kind, value: unknown): string {
  return kind === 'amount' ? formatUsdJsonNumber(picoUsd(BigInt(value as string))) : JSON.stringify(value);
}
