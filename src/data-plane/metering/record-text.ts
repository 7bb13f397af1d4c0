// Writes execution records in the form that a spool has them in (domain/executions/record-form.ts): put together as bytes, where they will be written
// from, since text that is joined from many pieces is made of as many objects. What a caller and an offer contribute is made once for each of them.

import type { ExecutionStart, TerminalRecord } from '../../domain/executions/execution-record.ts';
import { callerForm, offerForm } from '../../domain/executions/record-form.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { type AsciiText, jsonAscii } from '../../platform/ascii-text.ts';
import { RecordGroup, SharedText } from '../../platform/record-group.ts';
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

/** Made for one combination of what else it says, and found again by it. */
interface CallerText {
  readonly walletId: string | null;
  readonly text: SharedText;
}

interface OfferText {
  readonly api: string;
  readonly requestedModel: string;
  readonly model: string;
  readonly text: SharedText;
}

/** A caller has few wallets, an offer is asked for by few names in few dialects; beyond so many the oldest is made anew. */
const COMBINATIONS_MAX = 16;
const callers = new WeakMap<ScopedPrincipal, CallerText[]>();
const offers = new WeakMap<Offer, OfferText[]>();

function callerOf({ principal, walletId }: StartParts): SharedText {
  const made = combinationsOf(callers, principal);
  for (const known of made) if (known.walletId === walletId) return known.text;
  const { organizationId, teamId, userId, apiKeyId } = principal;
  const text = new SharedText(callerForm({ organizationId, teamId, userId, apiKeyId, walletId }));
  made.push({ walletId, text });
  return text;
}

function offerOf({ offer, api, requestedModel, model }: StartParts): SharedText {
  const made = combinationsOf(offers, offer);
  for (const known of made) if (known.requestedModel === requestedModel && known.api === api && known.model === model) return known.text;
  const { provider, providerModel, price } = offer;
  const text = new SharedText(offerForm({ api, requestedModel, model, provider: provider.id, providerModel, priceVersion: price?.version ?? null }));
  made.push({ api, requestedModel, model, text });
  return text;
}

function combinationsOf<Of extends object, Made>(all: WeakMap<Of, Made[]>, of: Of): Made[] {
  const known = all.get(of);
  if (known !== undefined) {
    if (known.length > COMBINATIONS_MAX) known.shift();
    return known;
  }
  const none: Made[] = [];
  all.set(of, none);
  return none;
}

const fragment = (text: string): Buffer => Buffer.from(text, 'latin1');

const ADMITTED = fragment('["a",');
const TERMINAL = fragment('["t",');
const NO_LABELS = fragment('null,[],');
const COMMA = 0x2c;
const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const ZERO = 0x30;
const ONE = 0x31;
/** More than the values of a record take whose length is bounded: counts, amounts, instants, names of ours. */
const BOUNDED_BYTES = 1_024;

/** Puts an AdmittedRecord and keeps what it says, for the TerminalRecord. */
export function putAdmitted(out: RecordGroup, start: StartParts): KeptStart {
  const { clientRequestId, tags, route, budgets } = start;
  const [caller, offer] = [callerOf(start), offerOf(start)];
  beginReferring(out, ADMITTED, caller, offer);
  const from = out.end;
  out.putByte(OPEN_BRACKET);
  out.putByte(QUOTE);
  out.putShort(start.id);
  out.putByte(QUOTE);
  out.putByte(COMMA);
  out.putNumber(start.admittedAtMs);
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
  out.reserve(BOUNDED_BYTES);
  out.putByte(CLOSE_BRACKET);
  const kept = new KeptStart(caller, offer, out, from);
  out.putByte(CLOSE_BRACKET);
  return kept;
}

/** Begins a record with the numbers of what it refers to, and makes room. */
function beginReferring(out: RecordGroup, kind: Buffer, caller: SharedText, offer: SharedText): void {
  const callerNumber = out.share(caller);
  const offerNumber = out.share(offer);
  out.beginRecord();
  out.reserve(BOUNDED_BYTES);
  out.put(kind);
  out.putNumber(callerNumber);
  out.putByte(COMMA);
  out.putNumber(offerNumber);
  out.putByte(COMMA);
}

/** For what happens rarely. */
const rareGroup = new RecordGroup();

/** What an AdmittedRecord would say. */
export function keepAdmitted(start: StartParts): KeptStart {
  rareGroup.clear();
  return putAdmitted(rareGroup, start);
}

/** Puts a TerminalRecord: what the admitted one says, and the end behind it. */
export function putTerminal(out: RecordGroup, admitted: KeptStart, end: EndParts): void {
  beginReferring(out, TERMINAL, admitted.caller, admitted.offer);
  admitted.putInto(out);
  out.reserve(BOUNDED_BYTES);
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
  out.reserve(2);
  out.putByte(CLOSE_BRACKET);
  out.putByte(CLOSE_BRACKET);
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
