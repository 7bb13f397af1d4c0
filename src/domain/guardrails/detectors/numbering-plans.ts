// Decides which phone numbers exist, by the numbering plans of libphonenumber (`libphonenumber-js/max`). This file
// reads the library's table itself, since the library's parser takes 48 µs per number and a text may have thousands.

import plans from 'libphonenumber-js/max/metadata';

type NumberType = readonly [pattern: string, lengths?: readonly number[]] | 0 | undefined;

/** The plans of all countries that share a calling code. */
interface Plans {
  /** For each length: whether the numbers can have it. */
  readonly lengths: readonly boolean[];
  /** Matches their numbers, of any type. */
  readonly numbers: RegExp;
}

const GENERAL_PATTERN = 2;
const LENGTHS = 3;
const TYPES = 11;
const CALLING_CODE_DIGITS_MAX = 3;
const ZERO = 0x30;

/** By calling code; null: no country has it. Made on first use. */
const known: (Plans | null | undefined)[] = [];

/** `digits`: the calling code and the national number, without a prefix, as ASCII; `count` of them. */
export function isNumberInPlan(digits: Buffer, count: number): boolean {
  let code = 0;
  for (let length = 1; length <= CALLING_CODE_DIGITS_MAX && length < count; length += 1) {
    code = code * 10 + (digits[length - 1] as number) - ZERO;
    const plans = plansOf(code);
    // No calling code is the beginning of another.
    if (plans !== null) return isInPlans(plans, digits, length, count);
  }
  return false;
}

/** The zero that is dialled within a country is often written after the country's code, too. */
function isInPlans({ lengths, numbers }: Plans, digits: Buffer, from: number, to: number): boolean {
  const isIn = (start: number) => lengths[to - start] === true && numbers.test(digits.toString('latin1', start, to));
  return isIn(from) || (digits[from] === ZERO && isIn(from + 1));
}

function plansOf(code: number): Plans | null {
  const found = known[code];
  if (found !== undefined) return found;
  const tables = tablesOf(String(code));
  const made = tables.length === 0 ? null : combined(tables);
  known[code] = made;
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

/** One expression for all countries of a code: North America alone has 25 with up to ten types each. */
function combined(tables: readonly (readonly unknown[])[]): Plans {
  const lengths: boolean[] = [];
  for (const length of tables.flatMap((table) => table[LENGTHS] as readonly number[])) lengths[length] = true;
  return { lengths, numbers: new RegExp(`^(?:${tables.map(patternOf).join('|')})$`) };
}

/** A number matches the country's general pattern and that of one of its types. */
function patternOf(table: readonly unknown[]): string {
  const general = String(table[GENERAL_PATTERN]);
  const types = ((table[TYPES] ?? []) as readonly NumberType[]).flatMap((type) =>
    Array.isArray(type) && type[0] !== '' ? [type[0] as string] : [],
  );
  return types.length === 0 ? `(?:${general})` : `(?=(?:${general})$)(?:${types.join('|')})`;
}
