// Writes execution records in the form that a spool has them in (domain/executions/record-form.ts): put together as bytes, where they will be written
// from, since text that is joined from many pieces is made of as many objects. What a caller and an offer contribute is made once for each of them.

import type { ExecutionStart, TerminalRecord } from '../../domain/executions/execution-record.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { AsciiText, jsonAscii } from '../../platform/ascii-text.ts';
import type { Offer } from '../catalog/serving-catalog.ts';
import { KeptStart } from './kept-start.ts';

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

/** With the wallet that pays where that is the principal's own. */
const principalTexts = new WeakMap<ScopedPrincipal, Buffer>();
const offerTexts = new WeakMap<Offer, { readonly model: string; readonly text: Buffer }>();

function principalText(principal: ScopedPrincipal, walletId: string | null): Buffer {
  let text = walletId === principal.walletId ? principalTexts.get(principal) : undefined;
  if (text === undefined) {
    const { organizationId, teamId, userId, apiKeyId } = principal;
    text = valuesOf([organizationId, teamId, userId, apiKeyId, walletId]);
    if (walletId === principal.walletId) principalTexts.set(principal, text);
  }
  return text;
}

function offerText(offer: Offer, model: string): Buffer {
  const known = offerTexts.get(offer);
  if (known !== undefined && known.model === model) return known.text;
  const { provider, providerModel, price } = offer;
  const text = valuesOf([model, provider.id, providerModel, price?.version ?? null]);
  offerTexts.set(offer, { model, text });
  return text;
}

/** An array's JSON without the brackets around it. */
function valuesOf(values: readonly (string | null)[]): Buffer {
  return Buffer.from(jsonAscii(values).slice(1, -1), 'latin1');
}

const fragment = (text: string): Buffer => Buffer.from(text, 'latin1');

const ADMITTED = fragment('["a",["');
const TERMINAL = fragment('["t"');
const NO_LABELS = fragment('null,[],');
const CLOSE = fragment(']]');
const COMMA = 0x2c;
const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const ZERO = 0x30;
const ONE = 0x31;
/** More than the values of a record take whose length is bounded: counts, amounts, instants, names of ours. */
const BOUNDED_BYTES = 1_024;

/** Puts an AdmittedRecord. */
export function putAdmitted(out: AsciiText, start: StartParts): void {
  const { clientRequestId, tags, route, budgets } = start;
  out.reserve(BOUNDED_BYTES);
  out.put(ADMITTED);
  out.putShort(start.id);
  out.putByte(QUOTE);
  out.putByte(COMMA);
  out.putNumber(start.admittedAtMs);
  out.putByte(COMMA);
  out.put(principalText(start.principal, start.walletId));
  out.reserve(BOUNDED_BYTES);
  out.putByte(COMMA);
  out.putByte(QUOTE);
  out.putShort(start.api);
  out.putByte(QUOTE);
  out.putByte(COMMA);
  out.putQuoted(start.requestedModel);
  out.reserve(BOUNDED_BYTES);
  out.putByte(COMMA);
  out.put(offerText(start.offer, start.model));
  out.reserve(BOUNDED_BYTES);
  out.putByte(COMMA);
  out.putByte(start.streamed ? ONE : ZERO);
  out.putByte(COMMA);
  if (clientRequestId === null && tags.length === 0) {
    out.put(NO_LABELS);
  } else {
    out.putQuoted(clientRequestId);
    out.putAscii(`,${jsonAscii(tags)},`);
    out.reserve(BOUNDED_BYTES);
  }
  out.putAmount(start.authorizedAmount);
  out.putByte(COMMA);
  out.putNumber(start.requestBytes);
  if (route !== null || budgets.length > 0) out.putAscii(`,${jsonAscii(route)},${jsonAscii(budgets.length > 0 ? budgets : null)}`);
  out.put(CLOSE);
}

/** For what happens rarely. */
const rareText = new AsciiText();

/** What the AdmittedRecord says, for the TerminalRecord. */
export function keepAdmitted(start: StartParts): KeptStart {
  rareText.begin();
  putAdmitted(rareText, start);
  return new KeptStart(rareText);
}

/** Puts a TerminalRecord: what the admitted one's text says, and the end behind it. */
export function putTerminal(out: AsciiText, admitted: KeptStart, end: EndParts): void {
  admitted.putInto(out);
  out.reserve(BOUNDED_BYTES);
  out.overwriteStart(TERMINAL);
  out.dropLast();
  out.putByte(COMMA);
  out.putByte(OPEN_BRACKET);
  out.putNumber(end.endedAtMs);
  putName(out, end.outcome);
  out.putByte(COMMA);
  out.putNumber(end.status);
  out.putByte(COMMA);
  out.putQuoted(end.errorCode);
  out.reserve(BOUNDED_BYTES);
  putUsage(out, end.usage);
  putName(out, end.usageSource);
  putName(out, end.billingStatus);
  out.putByte(COMMA);
  out.putAmount(end.ratedCost);
  out.putByte(COMMA);
  out.putAmount(end.charge);
  out.putByte(COMMA);
  out.putAmount(end.suspense);
  out.putByte(COMMA);
  out.putNumber(end.latencyMs);
  out.putByte(COMMA);
  out.putNumber(end.ttftMs);
  out.putByte(COMMA);
  out.putNumber(end.responseBytes);
  putRare(out, end);
  out.put(CLOSE);
}

/** A name of ours, in room. */
function putName(out: AsciiText, name: string | null): void {
  out.putByte(COMMA);
  if (name === null) {
    out.putNull();
    return;
  }
  out.putByte(QUOTE);
  out.putShort(name);
  out.putByte(QUOTE);
}

/** The text of a TerminalRecord. */
export function terminalRecord(admitted: KeptStart, end: EndParts): string {
  rareText.begin();
  putTerminal(rareText, admitted, end);
  return rareText.take();
}

/** In room. */
function putUsage(out: AsciiText, usage: Usage | null): void {
  out.putByte(COMMA);
  if (usage === null) {
    out.putNull();
    return;
  }
  out.putByte(OPEN_BRACKET);
  out.putNumber(usage.inputTokens);
  out.putByte(COMMA);
  out.putNumber(usage.cachedInputTokens);
  out.putByte(COMMA);
  out.putNumber(usage.cacheWriteTokens);
  out.putByte(COMMA);
  out.putNumber(usage.outputTokens);
  out.putByte(COMMA);
  out.putNumber(usage.reasoningTokens);
  out.putByte(COMMA);
  out.putNumber(usage.images);
  out.putByte(CLOSE_BRACKET);
}

/** What most records do not have. */
function putRare(out: AsciiText, { truncated, responseId, baselineCost, budgetUse }: EndParts): void {
  if (truncated !== true && responseId === null && baselineCost === null && budgetUse === null) return;
  const values = [truncated === true ? 1 : 0, responseId, baselineCost?.toString() ?? null, budgetUse?.toString() ?? null];
  out.putAscii(`,${jsonAscii(values).slice(1, -1)}`);
}
