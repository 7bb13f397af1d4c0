// Reads stored prices. There is one row for each version of a price, and it never changes.

import { readTerms } from '../../../domain/configuration/schema/price-schema.ts';
import type { Price } from '../../../domain/models/price.ts';
import { type PicoUsd, picoUsd } from '../../../domain/money/pico-usd.ts';
import type { PostgresClient } from '../pool.ts';

export interface PriceRow
  extends Readonly<
    Record<'input' | 'cached_input' | 'cache_write' | 'cache_write_1h' | 'output' | 'image', string | null>
  > {
  readonly version: string;
  readonly terms: unknown;
}

/** A row of `prices p` as a PriceRow. Amounts are text, since JSON numbers are not exact in JavaScript. */
export const PRICE_AS_JSON = `json_build_object('version', p.version::text, 'input', p.input::text,
  'cached_input', p.cached_input::text, 'cache_write', p.cache_write::text, 'cache_write_1h', p.cache_write_1h::text,
  'output', p.output::text, 'image', p.image::text, 'terms', p.terms)`;

export function toPrice(row: PriceRow): Price {
  const hourCacheWrite = toMoney(row.cache_write_1h);
  const terms = row.terms === null ? null : readTerms(row.terms);
  return {
    version: row.version,
    input: toMoney(row.input),
    cachedInput: toMoney(row.cached_input),
    cacheWrite: toMoney(row.cache_write),
    output: toMoney(row.output),
    image: toMoney(row.image),
    ...(hourCacheWrite === null ? {} : { hourCacheWrite }),
    ...(terms === null ? {} : { terms }),
  };
}

function toMoney(value: string | null): PicoUsd | null {
  return value === null ? null : picoUsd(BigInt(value));
}

/** Prices by version. Organizations' own prices are stored elsewhere (own-prices.ts); their versions are ids. */
export async function readPriceVersions(
  client: PostgresClient,
  versions: readonly string[],
): Promise<ReadonlyMap<string, Price>> {
  const { rows } = await client.query<{ price: PriceRow }>(
    `SELECT ${PRICE_AS_JSON} AS price FROM prices p WHERE p.version::text = ANY ($1::text[])`,
    [versions],
  );
  return new Map(rows.map(({ price }) => [price.version, toPrice(price)]));
}
