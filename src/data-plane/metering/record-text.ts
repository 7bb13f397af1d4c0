// Writes execution records (domain/executions/execution-record.ts) as JSON text: put together as bytes, since text that is joined from many pieces is
// made of as many objects and copied once more when it is written. What a caller and an offer contribute is written once for each of them.

import type { ExecutionStart, TerminalRecord } from '../../domain/executions/execution-record.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Offer } from '../catalog/serving-catalog.ts';
import { AsciiText, jsonAscii } from './ascii-text.ts';

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

/** One for all records: each is taken out of it as soon as it is put together. */
const out = new AsciiText();

/** With the wallet that pays where that is the principal's own. */
const principalTexts = new WeakMap<ScopedPrincipal, Buffer>();
const offerTexts = new WeakMap<Offer, { readonly model: string; readonly text: Buffer }>();

function principalText(principal: ScopedPrincipal, walletId: string | null): Buffer {
  let text = walletId === principal.walletId ? principalTexts.get(principal) : undefined;
  if (text === undefined) {
    const { organizationId, teamId, userId, apiKeyId } = principal;
    text = fieldsOf({ organizationId, teamId, userId, apiKeyId, walletId });
    if (walletId === principal.walletId) principalTexts.set(principal, text);
  }
  return text;
}

function offerText(offer: Offer, model: string): Buffer {
  const known = offerTexts.get(offer);
  if (known !== undefined && known.model === model) return known.text;
  const { provider, providerModel, price } = offer;
  const text = fieldsOf({ model, provider: provider.id, providerModel, priceVersion: price?.version ?? null });
  offerTexts.set(offer, { model, text });
  return text;
}

/** An object's JSON without the braces around it. */
function fieldsOf(fields: Readonly<Record<string, string | null>>): Buffer {
  return Buffer.from(jsonAscii(fields).slice(1, -1), 'latin1');
}

const fragment = (text: string): Buffer => Buffer.from(text, 'latin1');

const ADMITTED = fragment('{"type":"admitted","id":"');
const TERMINAL = fragment('{"type":"terminal"');
const ADMITTED_AT = fragment('","admittedAtMs":');
const COMMA = fragment(',');
const API = fragment(',"api":"');
const REQUESTED_MODEL = fragment('","requestedModel":');
const STREAMED = fragment(',"streamed":true');
const NOT_STREAMED = fragment(',"streamed":false');
const NO_LABELS = fragment(',"clientRequestId":null,"tags":[],"authorizedAmount":');
const CLIENT_REQUEST_ID = fragment(',"clientRequestId":');
const TAGS = fragment(',"tags":');
const AUTHORIZED_AMOUNT = fragment(',"authorizedAmount":');
const REQUEST_BYTES = fragment(',"requestBytes":');
const ROUTE = fragment(',"route":');
const BUDGETS = fragment(',"budgets":');
const CLOSE = fragment('}');

/** The text of an AdmittedRecord. */
export function admittedRecord(start: StartParts): string {
  const { clientRequestId, tags, route, budgets } = start;
  out.begin();
  out.put(ADMITTED);
  out.putAscii(start.id);
  out.put(ADMITTED_AT);
  out.putNumber(start.admittedAtMs);
  out.put(COMMA);
  out.put(principalText(start.principal, start.walletId));
  out.put(API);
  out.putAscii(start.api);
  out.put(REQUESTED_MODEL);
  out.putQuoted(start.requestedModel);
  out.put(COMMA);
  out.put(offerText(start.offer, start.model));
  out.put(start.streamed ? STREAMED : NOT_STREAMED);
  if (clientRequestId === null && tags.length === 0) {
    out.put(NO_LABELS);
  } else {
    out.put(CLIENT_REQUEST_ID);
    out.putQuoted(clientRequestId);
    out.put(TAGS);
    out.putAscii(jsonAscii(tags));
    out.put(AUTHORIZED_AMOUNT);
  }
  out.putAmount(start.authorizedAmount);
  out.put(REQUEST_BYTES);
  out.putNumber(start.requestBytes);
  if (route !== null) {
    out.put(ROUTE);
    out.putAscii(jsonAscii(route));
  }
  if (budgets.length > 0) {
    out.put(BUDGETS);
    out.putAscii(jsonAscii(budgets));
  }
  out.put(CLOSE);
  return out.take();
}

const ENDED_AT = fragment(',"endedAtMs":');
const OUTCOME = fragment(',"outcome":"');
const STATUS = fragment('","status":');
const NO_ERROR_CODE = fragment(',"errorCode":null,"usage":');
const ERROR_CODE = fragment(',"errorCode":');
const USAGE = fragment(',"usage":');
const INPUT_TOKENS = fragment('{"inputTokens":');
const CACHED_INPUT_TOKENS = fragment(',"cachedInputTokens":');
const CACHE_WRITE_TOKENS = fragment(',"cacheWriteTokens":');
const OUTPUT_TOKENS = fragment(',"outputTokens":');
const REASONING_TOKENS = fragment(',"reasoningTokens":');
const IMAGES = fragment(',"images":');
const USAGE_SOURCES = {
  reported: fragment('},"usageSource":"reported","billingStatus":"'),
  counted: fragment('},"usageSource":"counted","billingStatus":"'),
} as const;
const NO_USAGE_SOURCE = fragment('null,"usageSource":null,"billingStatus":"');
const RATED_COST = fragment('","ratedCost":');
const CHARGE = fragment(',"charge":');
const SUSPENSE = fragment(',"suspense":');
const LATENCY = fragment(',"latencyMs":');
const TTFT = fragment(',"ttftMs":');
const RESPONSE_BYTES = fragment(',"responseBytes":');
const TRUNCATED = fragment(',"truncated":true');
const RESPONSE_ID = fragment(',"responseId":');
const BASELINE_COST = fragment(',"baselineCost":');
const BUDGET_USE = fragment(',"budgetUse":');

/** The text of a TerminalRecord: the admitted one's with another type, and more behind it. */
export function terminalRecord(admitted: string, end: EndParts): string {
  out.begin();
  out.putAscii(admitted);
  out.overwriteStart(TERMINAL);
  out.dropLast();
  out.put(ENDED_AT);
  out.putNumber(end.endedAtMs);
  out.put(OUTCOME);
  out.putAscii(end.outcome);
  out.put(STATUS);
  out.putNumber(end.status);
  if (end.errorCode === null) {
    out.put(NO_ERROR_CODE);
  } else {
    out.put(ERROR_CODE);
    out.putQuoted(end.errorCode);
    out.put(USAGE);
  }
  putUsage(end);
  out.putAscii(end.billingStatus);
  out.put(RATED_COST);
  out.putAmount(end.ratedCost);
  out.put(CHARGE);
  out.putAmount(end.charge);
  out.put(SUSPENSE);
  out.putAmount(end.suspense);
  out.put(LATENCY);
  out.putNumber(end.latencyMs);
  out.put(TTFT);
  out.putNumber(end.ttftMs);
  out.put(RESPONSE_BYTES);
  out.putNumber(end.responseBytes);
  if (end.truncated === true) out.put(TRUNCATED);
  putRarely(RESPONSE_ID, end.responseId);
  putRarely(BASELINE_COST, end.baselineCost?.toString() ?? null);
  putRarely(BUDGET_USE, end.budgetUse?.toString() ?? null);
  out.put(CLOSE);
  return out.take();
}

function putUsage({ usage, usageSource }: EndParts): void {
  if (usage === null || usageSource === null) {
    out.put(NO_USAGE_SOURCE);
    return;
  }
  out.put(INPUT_TOKENS);
  out.putNumber(usage.inputTokens);
  out.put(CACHED_INPUT_TOKENS);
  out.putNumber(usage.cachedInputTokens);
  out.put(CACHE_WRITE_TOKENS);
  out.putNumber(usage.cacheWriteTokens);
  out.put(OUTPUT_TOKENS);
  out.putNumber(usage.outputTokens);
  out.put(REASONING_TOKENS);
  out.putNumber(usage.reasoningTokens);
  out.put(IMAGES);
  out.putNumber(usage.images);
  out.put(USAGE_SOURCES[usageSource]);
}

/** A field that most records do not have. */
function putRarely(name: Buffer, value: string | null): void {
  if (value === null) return;
  out.put(name);
  out.putQuoted(value);
}
