// Exports costs by day in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification) as CSV: one row per day
// (UTC), payer, team, user, key, model, price and own provider key. The standard defines the columns, so a new record
// field does not become a column here.

import type { Named, NameRows } from '../../../domain/reports/owners.ts';
import { DAY_MS } from '../../../platform/durations.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { type CsvValue, csvLine } from './csv.ts';
import { COMPLETION_TOKENS, PROMPT_TOKENS } from './metrics.ts';
import { CREDENTIAL_SOURCE, checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

export interface FocusParams extends ReportParams {
  /** Who provides the service and issues the invoice: the installation's brand. */
  readonly issuer: string;
}

interface ChargeRow {
  readonly organization_id: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly api_key_id: string;
  readonly publisher: string;
  readonly served: string;
  readonly called: string;
  readonly price: string | null;
  readonly source: 'service' | 'own';
  readonly credential: string | null;
  readonly unit: 'Images' | 'Tokens';
  readonly quantity: string;
  readonly billed: string;
  readonly rated: string;
  readonly requests: number;
  readonly prompt: string;
  readonly completion: string;
}

type Charge = Named<ChargeRow> & { readonly issuer: string; readonly dayMs: number };

/**
 * All mandatory columns, then the optional ones that apply. The billed cost is what a payer was charged; list and
 * contracted cost are the catalog price of the usage, so an organization that is not billed has only those. Prices
 * differ by kind of token, so a row has no unit price.
 */
const COLUMNS: Readonly<Record<string, (charge: Charge) => CsvValue>> = {
  BilledCost: (charge) => charge.billed,
  BillingAccountId: (charge) => charge.organization_id,
  BillingAccountName: (charge) => charge.organization ?? null,
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
  ResourceId: (charge) => charge.api_key_id,
  ResourceName: (charge) => charge.api_key ?? null,
  ResourceType: () => 'API Key',
  ServiceSubcategory: () => 'Generative AI',
  SkuId: (charge) => charge.served,
  SkuMeter: (charge) => charge.called,
  SkuPriceId: (charge) => charge.price,
  SubAccountId: (charge) => charge.team_id,
  SubAccountName: (charge) => charge.team ?? null,
  SubAccountType: (charge) => (charge.team_id === null ? null : 'Team'),
  x_UserId: (charge) => charge.user_id,
  x_UserName: (charge) => charge.user ?? null,
  x_Requests: (charge) => charge.requests,
  x_TokensPrompt: (charge) => charge.prompt,
  x_TokensCompletion: (charge) => charge.completion,
  x_CredentialSource: (charge) => charge.source,
  x_CredentialId: (charge) => charge.credential,
};

/**
 * Yields the header and then one piece for each day, first to last; the piece of a day without charges is empty. Other
 * reports can be read between two days.
 */
export async function* exportFocus(
  client: ClickHouseReader,
  params: FocusParams,
  nameRows: NameRows,
): AsyncGenerator<string> {
  const { window, issuer } = params;
  const values = Object.values(COLUMNS);
  yield csvLine(Object.keys(COLUMNS));
  for (let dayMs = Math.floor(window.fromMs / DAY_MS) * DAY_MS; dayMs < window.untilMs; dayMs += DAY_MS) {
    const day = {
      ...window,
      fromMs: Math.max(window.fromMs, dayMs),
      untilMs: Math.min(window.untilMs, dayMs + DAY_MS),
    };
    const rows = await nameRows(await selectCharges(client, { ...params, window: day }));
    yield rows.map((row) => csvLine(values.map((value) => value({ ...row, issuer, dayMs })))).join('');
  }
}

async function selectCharges(client: ClickHouseReader, params: ReportParams): Promise<ChargeRow[]> {
  // The aliases must not hide a column that a condition may use.
  const rows = await selectReport<
    Omit<ChargeRow, 'organization_id' | 'team_id' | 'user_id' | 'api_key_id'> & {
      readonly of_organization: string;
      readonly of_team: string | null;
      readonly of_user: string | null;
      readonly of_key: string;
    }
  >(
    client,
    `SELECT toString(organization_id) AS of_organization, toString(team_id) AS of_team, toString(user_id) AS of_user,
       toString(api_key_id) AS of_key,
       toString(provider) AS publisher, toString(model) AS served,
       toString(api) AS called, CAST(price_version, 'Nullable(String)') AS price,
       ${CREDENTIAL_SOURCE} AS source, toString(credential_id) AS credential,
       if(isNull(images), 'Tokens', 'Images') AS unit,
       toString(sum(ifNull(images, ${PROMPT_TOKENS} + ${COMPLETION_TOKENS}))) AS quantity,
       toString(sum(ifNull(total_cost, 0))) AS billed,
       toString(sum(ifNull(rated_cost, 0))) AS rated, count() AS requests,
       toString(sum(${PROMPT_TOKENS})) AS prompt, toString(sum(${COMPLETION_TOKENS})) AS completion
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY of_organization, of_team, of_user, of_key, publisher, served, called, price, source, credential, unit
     ORDER BY of_organization, of_team, of_user, of_key, publisher, served, called, price, source, credential, unit
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  return rows.map(({ of_organization, of_team, of_user, of_key, ...charge }) => ({
    organization_id: of_organization,
    team_id: of_team,
    user_id: of_user,
    api_key_id: of_key,
    ...charge,
  }));
}

/** Billing periods are months. */
function monthStart(timeMs: number, months: number): number {
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
}

function instant(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
}
