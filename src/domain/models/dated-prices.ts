// Finds the price of a deployment that is valid at an instant. Each of its prices may begin at an instant and be
// limited to hours of the day.

import { DAY_MS, MINUTE_MS } from '../../platform/durations.ts';
import type { Catalog, Model, ServedBy } from './catalog.ts';
import type { DayHours, Price } from './price.ts';

/** The last of the prices that is valid at `nowMs`; null: none is valid yet. */
export function priceAt(prices: readonly Price[], nowMs: number): Price | null {
  return prices.findLast(({ terms }) => isValid(terms?.from ?? null, terms?.between ?? null, nowMs)) ?? null;
}

function isValid(fromMs: number | null, hours: DayHours | null, nowMs: number): boolean {
  if (fromMs !== null && nowMs < fromMs) return false;
  if (hours === null) return true;
  const minute = Math.floor(msOfDay(nowMs) / MINUTE_MS);
  const { from, until } = hours;
  return from < until ? minute >= from && minute < until : minute >= from || minute < until;
}

function msOfDay(nowMs: number): number {
  return ((nowMs % DAY_MS) + DAY_MS) % DAY_MS;
}

/** The catalog with the prices of an instant, and when the next price change is: infinity if there is none. */
export interface CatalogAt {
  readonly catalog: Catalog;
  readonly untilMs: number;
}

/** Deployments with a single undated price (nearly all of them) stay unchanged. */
export function catalogAt(catalog: Catalog, nowMs: number): CatalogAt {
  const dated = catalog.models.flatMap((model) => model.servedBy.flatMap(({ prices = [] }) => prices));
  if (dated.length === 0) return { catalog, untilMs: Number.POSITIVE_INFINITY };
  const present = new Map(catalog.models.map((model) => [model, modelAt(model, nowMs)]));
  const at = (model: Model): Model => present.get(model) ?? model;
  return {
    catalog: {
      ...catalog,
      models: catalog.models.map(at),
      byName: new Map([...catalog.byName].map(([name, model]) => [name, at(model)])),
    },
    untilMs: Math.min(...dated.map((price) => nextChange(price, nowMs))),
  };
}

function modelAt(model: Model, nowMs: number): Model {
  if (model.servedBy.every(({ prices }) => prices === undefined)) return model;
  const priced = (served: ServedBy): ServedBy =>
    served.prices === undefined ? served : { ...served, price: priceAt(served.prices, nowMs) };
  return { ...model, servedBy: model.servedBy.map(priced) };
}

/** When the price next begins or ends to be valid. */
function nextChange({ terms }: Price, nowMs: number): number {
  const { from = null, between = null } = terms ?? {};
  if (from !== null && from > nowMs) return from;
  if (between === null) return Number.POSITIVE_INFINITY;
  const dayStart = nowMs - msOfDay(nowMs);
  const changes = [between.from, between.until].flatMap((minute) =>
    [0, 1].map((days) => dayStart + days * DAY_MS + minute * MINUTE_MS),
  );
  return Math.min(...changes.filter((changeMs) => changeMs > nowMs));
}
