// Exports costs by day in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification) as CSV: one row per day
// (UTC), payer, team, key, model and price. The standard defines the columns, so a new field of records is not among
// them.

import type { ClickHouseReader } from '../clickhouse.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

const DAY_MS = 86_400_000;

export interface FocusParams extends ReportParams {
  /** Who provides the service and issues the invoice: the installation's brand. */
  readonly issuer: string;
}

interface ChargeRow {
  readonly organization: string;
  readonly team: string | null;
  readonly api_key: string;
  readonly publisher: string;
  readonly served: string;
  readonly called: string;
  readonly price: string | null;
  readonly unit: 'Images' | 'Tokens';
  readonly quantity: number;
  readonly billed: string;
  readonly rated: string;
  readonly requests: number;
  readonly prompt: number;
  readonly completion: number;
}

interface Charge extends ChargeRow {
  readonly issuer: string;
  readonly dayMs: number;
}

/**
 * All mandatory columns, then the optional ones that apply. The billed cost is what a payer was charged; list and
 * contracted cost are the catalog price of the usage, so an organization that is not billed has only those. Prices
 * differ by kind of token, so a row has no unit price.
 */
const COLUMNS: Readonly<Record<string, (charge: Charge) => CsvValue>> = {
  BilledCost: (charge) => charge.billed,
  BillingAccountId: (charge) => charge.organization,
  BillingAccountName: () => null,
  BillingCurrency: () => 'USD',
  BillingPeriodEnd: (charge) => instant(monthStart(charge.dayMs, 1)),
  BillingPeriodStart: (charge) => instant(monthStart(charge.dayMs, 0)),
  ChargeCategory: () => 'Usage',
  ChargeClass: () => null,
  ChargeDescription: (charge) => `${charge.served} over ${charge.called}`,
  ChargePeriodEnd: (charge) => instant(charge.dayMs + DAY_MS),
  ChargePeriodStart: (charge) => instant(charge.dayMs),
  ContractedCost: (charge) => charge.rated,
  EffectiveCost: (charge) => charge.billed,
  InvoiceIssuerName: (charge) => charge.issuer,
  ListCost: (charge) => charge.rated,
  PricingQuantity: (charge) => charge.quantity,
  PricingUnit: (charge) => charge.unit,
  ProviderName: (charge) => charge.issuer,
  PublisherName: (charge) => charge.publisher,
  ServiceCategory: () => 'AI and Machine Learning',
  ServiceName: (charge) => charge.served,
  BillingAccountType: () => 'Organization',
  ChargeFrequency: () => 'Usage-Based',
  ConsumedQuantity: (charge) => charge.quantity,
  ConsumedUnit: (charge) => charge.unit,
  PricingCategory: () => 'Standard',
  ResourceId: (charge) => charge.api_key,
  ResourceType: () => 'API Key',
  ServiceSubcategory: () => 'Generative AI',
  SkuId: (charge) => charge.served,
  SkuMeter: (charge) => charge.called,
  SkuPriceId: (charge) => charge.price,
  SubAccountId: (charge) => charge.team,
  SubAccountType: (charge) => (charge.team === null ? null : 'Team'),
  x_Requests: (charge) => charge.requests,
  x_TokensPrompt: (charge) => charge.prompt,
  x_TokensCompletion: (charge) => charge.completion,
};

/** One day at a time, first to last. */
export async function* exportFocus(client: ClickHouseReader, params: FocusParams): AsyncGenerator<string> {
  const { window, issuer } = params;
  const values = Object.values(COLUMNS);
  yield csvLine(Object.keys(COLUMNS));
  for (let dayMs = Math.floor(window.fromMs / DAY_MS) * DAY_MS; dayMs < window.untilMs; dayMs += DAY_MS) {
    const day = {
      ...window,
      fromMs: Math.max(window.fromMs, dayMs),
      untilMs: Math.min(window.untilMs, dayMs + DAY_MS),
    };
    const rows = await selectCharges(client, { ...params, window: day });
    if (rows.length > 0)
      yield rows.map((row) => csvLine(values.map((value) => value({ ...row, issuer, dayMs })))).join('');
  }
}

async function selectCharges(client: ClickHouseReader, params: ReportParams): Promise<ChargeRow[]> {
  return selectReport<ChargeRow>(
    client,
    `SELECT toString(organization_id) AS organization, toString(team_id) AS team, toString(api_key_id) AS api_key,
      toString(provider) AS publisher, toString(model) AS served,
       toString(api) AS called, CAST(price_version, 'Nullable(String)') AS price,
         if(isNull(images), 'Tokens', 'Images') AS unit,
       sum(ifNull(images, ifNull(tokens_prompt, 0) + ifNull(tokens_completion, 0))) AS quantity,
         toString(sum(ifNull(total_cost, 0))) AS billed,
       toString(sum(ifNull(rated_cost, 0))) AS rated, count() AS requests, sum(ifNull(tokens_prompt, 0)) AS prompt,
         sum(ifNull(tokens_completion, 0)) AS completion
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY organization, team, api_key, publisher, served, called, price, unit
     ORDER BY organization, team, api_key, publisher, served, called, price, unit
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
}

/** Billing periods are months. */
function monthStart(timeMs: number, months: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
}

function instant(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
}
