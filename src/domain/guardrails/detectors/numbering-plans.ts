// Which phone numbers exist, by the numbering plans of libphonenumber (`libphonenumber-js/max`). Its table is read here
// rather than by its own parser: that takes 48 µs a number, and a text may have thousands.

import plans from 'libphonenumber-js/max/metadata';

type NumberType = readonly [pattern: string, lengths?: readonly number[]] | 0 | undefined;

/** One country's plan: the form of its numbers, and of each type of them. */
interface Plan {
  readonly general: RegExp;
  readonly types: readonly RegExp[];
}

const GENERAL_PATTERN = 2;
const TYPES = 11;
const CALLING_CODE_DIGITS_MAX = 3;

/** By calling code; made when first asked for. */
const known = new Map<string, readonly Plan[]>();

/** `digits`: the calling code and the national number, without a prefix. */
export function isNumberInPlan(digits: string): boolean {
  for (let length = 1; length <= CALLING_CODE_DIGITS_MAX; length += 1) {
    const plansOfCode = plansOf(digits.slice(0, length));
    // No calling code is the beginning of another.
    if (plansOfCode.length > 0) return isInAnyPlan(plansOfCode, digits.slice(length));
  }
  return false;
}

/** The zero that is dialled within a country is often written behind its code, too. */
function isInAnyPlan(found: readonly Plan[], national: string): boolean {
  return (
    found.some((plan) => isInPlan(plan, national)) ||
    (national.startsWith('0') && found.some((plan) => isInPlan(plan, national.slice(1))))
  );
}

function isInPlan({ general, types }: Plan, national: string): boolean {
  return general.test(national) && (types.length === 0 || types.some((type) => type.test(national)));
}

function plansOf(code: string): readonly Plan[] {
  const found = known.get(code);
  if (found !== undefined) return found;
  const made = tablesOf(code).map(planOf);
  known.set(code, made);
  return made;
}

function tablesOf(code: string): readonly unknown[][] {
  const {
    country_calling_codes: countries,
    countries: byCountry,
    nonGeographic = {},
  } = plans as unknown as {
    readonly country_calling_codes: Readonly<Record<string, readonly string[]>>;
    readonly countries: Readonly<Record<string, unknown[]>>;
    readonly nonGeographic?: Readonly<Record<string, unknown[]>>;
  };
  const table = Object.hasOwn(nonGeographic, code) ? nonGeographic[code] : undefined;
  if (table !== undefined) return [table];
  if (!Object.hasOwn(countries, code)) return [];
  return (countries[code] ?? []).flatMap((country) => (byCountry[country] === undefined ? [] : [byCountry[country]]));
}

function planOf(table: readonly unknown[]): Plan {
  const types = (table[TYPES] ?? []) as readonly NumberType[];
  return {
    general: whole(String(table[GENERAL_PATTERN])),
    types: types.flatMap((type) => (Array.isArray(type) && type[0] !== '' ? [whole(type[0] as string)] : [])),
  };
}

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`);
}
