// Writes execution records in the form that a spool has them in (domain/executions/record-form.ts): put together as
// bytes, where they will be written from, since text that is joined from many pieces is made of as many objects. What a
// caller, a deployment and an ending contribute is made once for each of them.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { ModelRoute } from '../../domain/routing/model-route.ts';
import type { Outcome } from '../../domain/settlement/outcome.ts';
import type { Usage } from '../../domain/usage/usage.ts';
import { executionIdTimeText } from '../../platform/execution-id.ts';
import { type AsciiText, jsonAscii } from '../../records/ascii-text.ts';
import type { ExecutionStart, TerminalRecord } from '../../records/execution-record.ts';
import { callerForm, deploymentForm, endingForm, WHOLE_ID } from '../../records/record-form.ts';
import { RecordGroup, SharedText } from '../../records/record-group.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import { KeptStart } from './kept-start.ts';

/** An ExecutionStart, by what it is made from. */
export interface StartParts extends Omit<ExecutionStart, keyof Prepared | 'authorizedAmount' | 'route' | 'budgets'> {
  readonly principal: ScopedPrincipal;
  readonly deployment: Deployment;
  readonly authorizedAmount: bigint | null;
  readonly route: ModelRoute | null;
  readonly budgets: readonly string[];
}

type Prepared = Pick<
  ExecutionStart,
  'organizationId' | 'teamId' | 'userId' | 'apiKeyId' | 'provider' | 'providerModel' | 'priceVersion'
>;

/** What a terminal record says beyond its start. */
export interface EndParts
  extends Omit<
    TerminalRecord,
    keyof ExecutionStart | 'type' | 'ratedCost' | 'charge' | 'suspense' | 'responseId' | 'baselineCost' | 'budgetUse'
  > {
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

interface DeploymentText {
  readonly api: string;
  readonly requestedModel: string;
  readonly model: string;
  readonly streamed: boolean;
  readonly text: SharedText;
}

type Ending = Pick<EndParts, 'status' | 'errorCode' | 'usageSource' | 'billingStatus'>;

interface EndingText extends Ending {
  readonly text: SharedText;
}

/**
 * A caller has few wallets, a deployment is asked for by few names in few dialects, an outcome has few statuses; beyond
 * so many the oldest is made anew.
 */
const COMBINATIONS_MAX = 16;
const callers = new WeakMap<ScopedPrincipal, CallerText[]>();
const deployments = new WeakMap<Deployment, DeploymentText[]>();
const endings = new Map<Outcome, EndingText[]>();

function callerOf({ principal, walletId }: StartParts): SharedText {
  const made = combinationsOf(callers, principal);
  for (const known of made) if (known.walletId === walletId) return known.text;
  const { organizationId, teamId, userId, apiKeyId } = principal;
  const text = new SharedText(callerForm({ organizationId, teamId, userId, apiKeyId, walletId }));
  made.push({ walletId, text });
  return text;
}

function deploymentOf({ deployment, api, requestedModel, model, streamed }: StartParts): SharedText {
  const made = combinationsOf(deployments, deployment);
  for (const known of made) {
    if (
      known.requestedModel === requestedModel &&
      known.api === api &&
      known.model === model &&
      known.streamed === streamed
    )
      return known.text;
  }
  const { provider, providerModel, price } = deployment;
  const text = new SharedText(
    deploymentForm({
      api,
      requestedModel,
      model,
      provider: provider.id,
      providerModel,
      priceVersion: price?.version ?? null,
      streamed,
    }),
  );
  made.push({ api, requestedModel, model, streamed, text });
  return text;
}

function endingOf({
  outcome,
  status,
  errorCode,
  usageSource,
  billingStatus,
}: Ending & { readonly outcome: Outcome }): SharedText {
  const made = combinationsOf(endings, outcome);
  for (const known of made) {
    const isSame = known.status === status && known.errorCode === errorCode && known.usageSource === usageSource;
    if (isSame && known.billingStatus === billingStatus) return known.text;
  }
  const text = new SharedText(endingForm({ outcome, status, errorCode, usageSource, billingStatus }));
  made.push({ status, errorCode, usageSource, billingStatus, text });
  return text;
}

function combinationsOf<Of, Made>(
  all: { get(of: Of): Made[] | undefined; set(of: Of, made: Made[]): unknown },
  of: Of,
): Made[] {
  const known = all.get(of);
  if (known !== undefined) {
    if (known.length > COMBINATIONS_MAX) known.shift();
    return known;
  }
  const none: Made[] = [];
  all.set(of, none);
  return none;
}

const COMMA = 0x2c;
const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
/** More than the values of a record take whose length is bounded: counts, amounts, instants, an id of ours. */
const BOUNDED_BYTES = 1_024;

/** Puts an AdmittedRecord and keeps what it says, for the TerminalRecord. */
export function putAdmitted(out: RecordGroup, start: StartParts): KeptStart {
  const { id, admittedAtMs, authorizedAmount, requestBytes, clientRequestId, tags, route, budgets } = start;
  const [caller, deployment] = [callerOf(start), deploymentOf(start)];
  beginReferring(out, admittedAtMs, caller, deployment);
  const from = out.end;
  putId(out, id, admittedAtMs);
  out.putByte(COMMA);
  out.putAmount(authorizedAmount);
  out.putByte(COMMA);
  out.putNumber(requestBytes);
  if (clientRequestId !== null || tags.length > 0 || route !== null || budgets.length > 0) {
    putNamed(out, {
      ...(clientRequestId === null ? NOTHING : { clientRequestId }),
      ...(tags.length === 0 ? NOTHING : { tags }),
      ...(route === null ? NOTHING : { route }),
      ...(budgets.length === 0 ? NOTHING : { budgets }),
    });
  }
  const kept = new KeptStart(caller, deployment, admittedAtMs, out, from);
  out.putByte(CLOSE_BRACKET);
  return kept;
}

/** Begins a record with its instant and the numbers of what it refers to, and makes room. */
function beginReferring(out: RecordGroup, admittedAtMs: number, caller: SharedText, deployment: SharedText): void {
  const originMs = out.originMs(admittedAtMs);
  const callerNumber = out.share(caller);
  const deploymentNumber = out.share(deployment);
  out.beginRecord();
  out.reserve(BOUNDED_BYTES);
  out.putByte(OPEN_BRACKET);
  out.putNumber(admittedAtMs - originMs);
  out.putByte(COMMA);
  out.putNumber(callerNumber);
  out.putByte(COMMA);
  out.putNumber(deploymentNumber);
  out.putByte(COMMA);
}

/** What the ids of the millisecond begin with that the last one was made in. */
let lastMs = -1;
let lastTimeText = '';

/** In room. */
function putId(out: AsciiText, id: string, admittedAtMs: number): void {
  if (admittedAtMs !== lastMs) {
    lastMs = admittedAtMs;
    lastTimeText = executionIdTimeText(admittedAtMs);
  }
  if (!id.startsWith(lastTimeText) || id.startsWith(WHOLE_ID, lastTimeText.length)) {
    out.putQuoted(WHOLE_ID + id);
    out.reserve(BOUNDED_BYTES);
    return;
  }
  out.putByte(QUOTE);
  out.putShort(id, lastTimeText.length);
  out.putByte(QUOTE);
}

/** What most records do not have, and room behind it. */
function putNamed(out: AsciiText, values: object): void {
  out.putAscii(`,${jsonAscii(values)}`);
  out.reserve(BOUNDED_BYTES);
}

const NOTHING = {};

/** For what happens rarely. */
const rareGroup = new RecordGroup();

/** What an AdmittedRecord would say. */
export function keepAdmitted(start: StartParts): KeptStart {
  rareGroup.clear();
  return putAdmitted(rareGroup, start);
}

/** Puts a TerminalRecord: what the admitted one says, and the end behind it. */
export function putTerminal(out: RecordGroup, admitted: KeptStart, end: EndParts): void {
  const { caller, deployment, admittedAtMs } = admitted;
  // What it shares comes before it.
  out.originMs(admittedAtMs);
  const endingNumber = out.share(endingOf(end));
  beginReferring(out, admittedAtMs, caller, deployment);
  admitted.putInto(out);
  out.reserve(BOUNDED_BYTES);
  out.putByte(COMMA);
  out.putByte(OPEN_BRACKET);
  out.putNumber(endingNumber);
  out.putByte(COMMA);
  out.putNumber(end.endedAtMs - admittedAtMs);
  out.putByte(COMMA);
  out.putNumber(end.latencyMs);
  out.putByte(COMMA);
  out.putNumber(end.ttftMs);
  out.putByte(COMMA);
  out.putNumber(end.responseBytes);
  putUsage(out, end.usage);
  out.putByte(COMMA);
  out.putAmount(end.ratedCost);
  if (end.charge !== end.ratedCost) {
    out.putByte(COMMA);
    out.putAmount(end.charge);
  }
  putRare(out, end);
  out.putByte(CLOSE_BRACKET);
  out.putByte(CLOSE_BRACKET);
}

/** In room. */
function putUsage(out: AsciiText, usage: Usage | null): void {
  out.putByte(COMMA);
  if (usage === null) {
    out.putNull();
    return;
  }
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, cacheWriteTokens, images } = usage;
  out.putByte(OPEN_BRACKET);
  out.putNumber(inputTokens);
  out.putByte(COMMA);
  out.putNumber(outputTokens);
  const told =
    images !== null
      ? 4
      : cacheWriteTokens !== null
        ? 3
        : reasoningTokens !== null
          ? 2
          : cachedInputTokens !== null
            ? 1
            : 0;
  if (told > 0) putCount(out, cachedInputTokens);
  if (told > 1) putCount(out, reasoningTokens);
  if (told > 2) putCount(out, cacheWriteTokens);
  if (told > 3) putCount(out, images);
  out.putByte(CLOSE_BRACKET);
}

function putCount(out: AsciiText, count: number | null): void {
  out.putByte(COMMA);
  out.putNumber(count);
}

function putRare(
  out: AsciiText,
  { suspense, truncated, responseId, itemIds = [], baselineCost, budgetUse }: EndParts,
): void {
  if (
    suspense === 0n &&
    truncated !== true &&
    responseId === null &&
    itemIds.length === 0 &&
    baselineCost === null &&
    budgetUse === null
  )
    return;
  putNamed(out, {
    ...(suspense === 0n ? NOTHING : { suspense: suspense.toString() }),
    ...(truncated === true ? { truncated } : NOTHING),
    ...(responseId === null ? NOTHING : { responseId }),
    ...(itemIds.length === 0 ? NOTHING : { itemIds }),
    ...(baselineCost === null ? NOTHING : { baselineCost: baselineCost.toString() }),
    ...(budgetUse === null ? NOTHING : { budgetUse: budgetUse.toString() }),
  });
}
