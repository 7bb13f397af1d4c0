// Writes execution records (domain/executions/execution-record.ts) as JSON text: what a caller and an offer contribute is written once for
// each of them, not once for each request.

import type { ExecutionStart, TerminalRecord } from '../../domain/executions/execution-record.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import type { Offer } from '../catalog/serving-catalog.ts';

/** An ExecutionStart, by what it is made from. */
export interface StartParts extends Omit<ExecutionStart, keyof Prepared | 'authorizedAmount' | 'route' | 'budgets'> {
  readonly principal: ScopedPrincipal;
  readonly offer: Offer;
  readonly authorizedAmount: bigint | null;
  readonly route: ModelRoute | null;
  readonly budgets: readonly string[];
}

type Prepared = Pick<ExecutionStart, 'organizationId' | 'teamId' | 'userId' | 'apiKeyId' | 'provider' | 'providerModel' | 'priceVersion'>;

/** What a terminal record says beyond its start. */
export interface EndParts
  extends Omit<TerminalRecord, keyof ExecutionStart | 'type' | 'ratedCost' | 'charge' | 'suspense' | 'responseId' | 'baselineCost' | 'budgetUse'> {
  readonly ratedCost: bigint | null;
  readonly charge: bigint | null;
  readonly suspense: bigint;
  readonly responseId: string | null;
  readonly baselineCost: bigint | null;
  readonly budgetUse: bigint | null;
}

const PLAIN = /^[ !#-[\]-~]*$/;

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

function quoteOrNull(text: string | null): string {
  return text === null ? 'null' : quote(text);
}

/** Money is a decimal string. */
function amount(value: bigint | null): string {
  return value === null ? 'null' : `"${value}"`;
}

/** With the wallet that pays where that is the principal's own. Long pieces: a text of many short ones is slow to write. */
const principalTexts = new WeakMap<ScopedPrincipal, string>();
const offerTexts = new WeakMap<Offer, { readonly model: string; readonly text: string }>();

function principalText(principal: ScopedPrincipal, walletId: string | null): string {
  let text = walletId === principal.walletId ? principalTexts.get(principal) : undefined;
  if (text === undefined) {
    const { organizationId, teamId, userId, apiKeyId } = principal;
    text = JSON.stringify({ organizationId, teamId, userId, apiKeyId, walletId }).slice(1, -1);
    if (walletId === principal.walletId) principalTexts.set(principal, text);
  }
  return text;
}

function offerText(offer: Offer, model: string): string {
  const known = offerTexts.get(offer);
  if (known !== undefined && known.model === model) return known.text;
  const { provider, providerModel, price } = offer;
  const text = JSON.stringify({ model, provider: provider.id, providerModel, priceVersion: price?.version ?? null }).slice(1, -1);
  offerTexts.set(offer, { model, text });
  return text;
}

/** The fields of an ExecutionStart, without the braces around them: both records have them. */
export function startText(start: StartParts): string {
  const { clientRequestId, tags, route, budgets, authorizedAmount } = start;
  const labels =
    clientRequestId === null && tags.length === 0 ? NO_LABELS : `,"clientRequestId":${quoteOrNull(clientRequestId)},"tags":${JSON.stringify(tags)},`;
  return (
    `"id":"${start.id}","admittedAtMs":${start.admittedAtMs},${principalText(start.principal, start.walletId)},` +
    `"api":"${start.api}","requestedModel":${quote(start.requestedModel)},${offerText(start.offer, start.model)}` +
    `${start.streamed ? ',"streamed":true' : ',"streamed":false'}${labels}"authorizedAmount":${amount(authorizedAmount)},"requestBytes":${start.requestBytes}` +
    (route === null ? '' : `,"route":${JSON.stringify(route)}`) +
    (budgets.length === 0 ? '' : `,"budgets":${JSON.stringify(budgets)}`)
  );
}
const NO_LABELS = ',"clientRequestId":null,"tags":[],';

export function admittedRecord(start: string): string {
  return `{"type":"admitted",${start}}`;
}

export function terminalRecord(start: string, end: EndParts): string {
  const { usage, usageSource, responseId, baselineCost, budgetUse } = end;
  return (
    `{"type":"terminal",${start},"endedAtMs":${end.endedAtMs},"outcome":"${end.outcome}","status":${end.status},"errorCode":${quoteOrNull(end.errorCode)},` +
    `"usage":${usage === null ? 'null' : usageText(usage)},"usageSource":${usageSource === null ? 'null' : `"${usageSource}"`},` +
    `"billingStatus":"${end.billingStatus}","ratedCost":${amount(end.ratedCost)},"charge":${amount(end.charge)},"suspense":"${end.suspense}",` +
    `"latencyMs":${end.latencyMs},"ttftMs":${end.ttftMs},"responseBytes":${end.responseBytes}` +
    (responseId === null ? '' : `,"responseId":${quote(responseId)}`) +
    (baselineCost === null ? '' : `,"baselineCost":"${baselineCost}"`) +
    (budgetUse === null ? '}' : `,"budgetUse":"${budgetUse}"}`)
  );
}

function usageText(usage: Usage): string {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, images } = usage;
  return (
    `{"inputTokens":${inputTokens},"cachedInputTokens":${cachedInputTokens},"cacheWriteTokens":${cacheWriteTokens},` +
    `"outputTokens":${outputTokens},"reasoningTokens":${reasoningTokens},"images":${images}}`
  );
}
