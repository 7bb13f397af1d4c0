// How records lie in a spool: several in a frame, a JSON array. What many of them say alike is there once, before the
// first that refers to it by its number, and instants are told from the first one's; both hold for this frame alone.
// Every request writes two records, and what they cost is their bytes.
//
//   [ 1795183858776, ["c", ...caller], ["o", ...deployment], ["e", ...ending],
//     the origin     number 0          number 1         number 2
//     [0, 0, 1, "7562-bcf4-d4f7304250a6", 147500000, 94],                                      an admitted one: AdmittedForm
//     [0, 0, 1, "7562-bcf4-d4f7304250a6", 147500000, 94, [2, 6, 9, 8, 1024, [250, 200], 2312500000]], ... ]      its end: with an EndForm
//
// What most records lack is in an object behind the rest, by its name. Amounts are numbers as far as these are exact,
// then strings.

import type { Usage } from '../domain/usage/usage.ts';
import { executionIdTimeText } from '../platform/execution-id.ts';
import type { ExecutionRecord, ExecutionStart, TerminalRecord } from './execution-record.ts';
import { readOlderFrame } from './older-record-forms.ts';

type Start = ExecutionStart;
type End = Omit<TerminalRecord, keyof ExecutionStart | 'type'>;
type Amount = number | string | null;
type Count = number | null;

type CallerForm = readonly [
  kind: 'c',
  organizationId: Start['organizationId'],
  teamId: Start['teamId'],
  userId: Start['userId'],
  apiKeyId: Start['apiKeyId'],
  walletId: Start['walletId'],
];

type DeploymentForm = readonly [
  kind: 'o',
  api: Start['api'],
  requestedModel: Start['requestedModel'],
  model: Start['model'],
  provider: Start['provider'],
  providerModel: Start['providerModel'],
  priceVersion: Start['priceVersion'],
  streamed: Start['streamed'],
];

type EndingForm = readonly [
  kind: 'e',
  outcome: End['outcome'],
  status: End['status'],
  errorCode: End['errorCode'],
  usageSource: End['usageSource'],
  billingStatus: End['billingStatus'],
];

type AdmittedForm = readonly [
  /** From the frame's origin. */
  admittedMs: number,
  callerNumber: number,
  deploymentNumber: number,
  /** Without its time where that is the one of admission; else whole, behind WHOLE_ID. */
  id: string,
  authorizedAmount: Amount,
  requestBytes: Start['requestBytes'],
  ...more: unknown[],
];

type EndForm = readonly [
  endingNumber: number,
  /** From admission. */
  endedMs: number,
  latencyMs: End['latencyMs'],
  ttftMs: End['ttftMs'],
  responseBytes: End['responseBytes'],
  usage: UsageForm | null,
  ratedCost: Amount,
  /** First the charge, where it is not the rated cost. */
  ...more: unknown[],
];

/** Those that are null at the end are left out. */
type UsageForm = readonly [
  input: Count,
  output: Count,
  cachedInput?: Count,
  reasoning?: Count,
  cacheWrite?: Count,
  images?: Count,
];

/** In front of an id that is told whole. */
export const WHOLE_ID = '=';

type Caller = Pick<Start, 'organizationId' | 'teamId' | 'userId' | 'apiKeyId' | 'walletId'>;
type AskedDeployment = Pick<
  Start,
  'api' | 'requestedModel' | 'model' | 'provider' | 'providerModel' | 'priceVersion' | 'streamed'
>;
type Ending = Pick<End, 'outcome' | 'status' | 'errorCode' | 'usageSource' | 'billingStatus'>;

export function callerForm({ organizationId, teamId, userId, apiKeyId, walletId }: Caller): CallerForm {
  return ['c', organizationId, teamId, userId, apiKeyId, walletId];
}

export function deploymentForm({
  api,
  requestedModel,
  model,
  provider,
  providerModel,
  priceVersion,
  streamed,
}: AskedDeployment): DeploymentForm {
  return ['o', api, requestedModel, model, provider, providerModel, priceVersion, streamed];
}

export function endingForm({ outcome, status, errorCode, usageSource, billingStatus }: Ending): EndingForm {
  return ['e', outcome, status, errorCode, usageSource, billingStatus];
}

/** The records of a frame that is parsed; null when it is none. */
export function readFrameForm(value: unknown): ExecutionRecord[] | null {
  if (!Array.isArray(value) || typeof value[0] !== 'number') return readOlderFrame(value);
  const [originMs, ...items] = value as [number, ...unknown[]];
  const shared: Shared[] = [];
  const records: ExecutionRecord[] = [];
  for (const item of items) {
    if (!Array.isArray(item)) return null;
    const sharing = typeof item[0] === 'string' ? readShared(item) : null;
    const record = sharing === null ? readRecord(item as unknown as AdmittedForm, originMs, shared) : null;
    if (sharing !== null) shared.push(sharing);
    else if (record !== null) records.push(record);
    else return null;
  }
  return records.length === 0 ? null : records;
}

type Shared =
  | { readonly kind: 'c'; readonly says: Caller }
  | { readonly kind: 'o'; readonly says: AskedDeployment }
  | { readonly kind: 'e'; readonly says: Ending };

function readShared(item: readonly unknown[]): Shared | null {
  switch (item[0]) {
    case 'c': {
      const [kind, organizationId, teamId, userId, apiKeyId, walletId] = item as CallerForm;
      return { kind, says: { organizationId, teamId, userId, apiKeyId, walletId } };
    }
    case 'o': {
      const [kind, api, requestedModel, model, provider, providerModel, priceVersion, streamed] =
        item as DeploymentForm;
      return { kind, says: { api, requestedModel, model, provider, providerModel, priceVersion, streamed } };
    }
    case 'e': {
      const [kind, outcome, status, errorCode, usageSource, billingStatus] = item as EndingForm;
      return { kind, says: { outcome, status, errorCode, usageSource, billingStatus } };
    }
    default:
      return null;
  }
}

function readRecord(form: AdmittedForm, originMs: number, shared: readonly Shared[]): ExecutionRecord | null {
  const [admittedMs, callerNumber, deploymentNumber, id, authorizedAmount, requestBytes, ...more] = form;
  const [caller, deployment] = [shared[callerNumber], shared[deploymentNumber]];
  if (caller?.kind !== 'c' || deployment?.kind !== 'o' || typeof id !== 'string' || requestBytes === undefined)
    return null;
  const admittedAtMs = originMs + admittedMs;
  const end = Array.isArray(more.at(-1)) ? (more.pop() as EndForm) : null;
  const start: Start = {
    id: id.startsWith(WHOLE_ID) ? id.slice(WHOLE_ID.length) : executionIdTimeText(admittedAtMs) + id,
    admittedAtMs,
    ...caller.says,
    ...deployment.says,
    clientRequestId: null,
    tags: NO_TAGS,
    authorizedAmount: readAmount(authorizedAmount),
    requestBytes,
    ...(more[0] as Partial<Start> | undefined),
  };
  if (end === null) return { type: 'admitted', ...start };
  const ended = readEnd(end, admittedAtMs, shared);
  return ended && { type: 'terminal', ...start, ...ended };
}

const NO_TAGS: readonly string[] = [];

function readEnd(form: EndForm, admittedAtMs: number, shared: readonly Shared[]): End | null {
  const [endingNumber, endedMs, latencyMs, ttftMs, responseBytes, usage, ratedCost, ...more] = form;
  const ending = shared[endingNumber];
  if (ending?.kind !== 'e' || ratedCost === undefined) return null;
  const charge = isAmount(more[0]) ? (more.shift() as Amount) : ratedCost;
  return {
    endedAtMs: admittedAtMs + endedMs,
    ...ending.says,
    usage: usage === null ? null : readUsage(usage),
    ratedCost: readAmount(ratedCost),
    charge: readAmount(charge),
    suspense: '0',
    latencyMs,
    ttftMs,
    responseBytes,
    ...(more[0] as Partial<End> | undefined),
  };
}

function isAmount(value: unknown): value is Amount {
  return value === null || typeof value === 'number' || typeof value === 'string';
}

function readAmount(amount: Amount): string | null {
  return amount === null ? null : String(amount);
}

function readUsage([
  inputTokens,
  outputTokens,
  cachedInputTokens = null,
  reasoningTokens = null,
  cacheWriteTokens = null,
  images = null,
]: UsageForm): Usage {
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, images };
}
