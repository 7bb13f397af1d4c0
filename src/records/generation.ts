// Renders the generation record of spec 2.1 as JSON, from the table of fields. Amounts are exact JSON numbers, which
// JSON.stringify cannot write, so the text is assembled here.

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

/** What storage knows of an execution. Amounts are pico-dollars as in a record; null: not known. */
export type Generation = { readonly [Name in ShownField]: ValueOf<Name> } & {
  readonly [Name in ShownCount]: number | null;
} & {
  /** The virtual model that the request named; null: the request named the serving model or an alias of it. */
  readonly virtualModel: string | null;
  /** False: the request was refused before a provider was chosen. */
  readonly hasProvider: boolean;
};

export interface ShownValue {
  readonly field: ShownField | ShownCount;
  /** The field's name in the generation record. */
  readonly shownAs: string;
  readonly kind: Kind;
  /** Column of `generations`. */
  readonly column: string;
}

/** The members of the generation record, in order. */
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
 * An unknown count or cost is left out: missing means unavailable, not zero (spec 2.1). For a request for the virtual
 * model, `model` is the virtual model and `routed_model` the model that served.
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

/** The charge in pico-dollars; null: not known. An execution that is not billed is known to cost its customer 0. */
export function knownCharge({ charge, billingStatus }: Pick<Generation, 'charge' | 'billingStatus'>): string | null {
  return charge ?? (billingStatus === 'not_billed' ? '0' : null);
}

function textOf(kind: Kind, value: unknown): string {
  return kind === 'amount' ? formatUsdJsonNumber(picoUsd(BigInt(value as string))) : JSON.stringify(value);
}
