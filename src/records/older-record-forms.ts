// The forms in which older versions wrote records into a spool, for reading alone: a spool that they left is shipped by
// the version that follows.
//
//   [ ["c", ...caller], ["o", ...deployment], ["a", caller, deployment, [...start]], ["t", caller, deployment, [...start], [...end]], ... ]     several in a frame
//   ["a", [id, admittedAtMs, ...caller, ...deployment, ...rest]]   ["t", [the same], [...end]]                                       each alone
//   { "type": "admitted", ... }   { "type": "terminal", ... }                                                                    with names

import type { Usage } from '../domain/usage/usage.ts';
import type { ExecutionRecord, ExecutionStart, TerminalRecord } from './execution-record.ts';

type Start = ExecutionStart;
type End = Omit<TerminalRecord, keyof ExecutionStart | 'type'>;
type Flag = 0 | 1;
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
];

type StartForm = readonly [
  id: Start['id'],
  admittedAtMs: Start['admittedAtMs'],
  streamed: Flag,
  clientRequestId: Start['clientRequestId'],
  tags: Start['tags'],
  authorizedAmount: Start['authorizedAmount'],
  requestBytes: Start['requestBytes'],
  route?: Start['route'],
  budgets?: Start['budgets'] | null,
];

type EndForm = readonly [
  endedAtMs: End['endedAtMs'],
  outcome: End['outcome'],
  status: End['status'],
  errorCode: End['errorCode'],
  usage: UsageForm | null,
  usageSource: End['usageSource'],
  billingStatus: End['billingStatus'],
  ratedCost: End['ratedCost'],
  charge: End['charge'],
  suspense: End['suspense'],
  latencyMs: End['latencyMs'],
  ttftMs: End['ttftMs'],
  responseBytes: End['responseBytes'],
  truncated?: Flag,
  responseId?: End['responseId'],
  baselineCost?: End['baselineCost'],
  budgetUse?: string | null,
];

type UsageForm = readonly [
  input: Count,
  cachedInput: Count,
  cacheWrite: Count,
  output: Count,
  reasoning: Count,
  images: Count,
];

type Caller = Pick<Start, 'organizationId' | 'teamId' | 'userId' | 'apiKeyId' | 'walletId'>;
type AskedDeployment = Pick<Start, 'api' | 'requestedModel' | 'model' | 'provider' | 'providerModel' | 'priceVersion'>;

/** The records of a frame that is parsed; null when it is none of these. */
export function readOlderFrame(value: unknown): ExecutionRecord[] | null {
  if (!Array.isArray(value)) return isNamed(value) ? [value] : null;
  if (typeof value[0] === 'string') return readAlone(value);
  const shared: (Caller | AskedDeployment)[] = [];
  const records: ExecutionRecord[] = [];
  for (const item of value as readonly unknown[]) {
    const record = Array.isArray(item) ? readItem(item, shared) : isNamed(item) ? item : null;
    if (record === null) return null;
    if (record !== SHARED) records.push(record);
  }
  return records.length === 0 ? null : records;
}

/** `[kind, [id, admittedAtMs, ...caller, ...deployment, ...rest], [...end]]`. */
function readAlone([kind, start, end]: readonly unknown[]): ExecutionRecord[] | null {
  if (!Array.isArray(start)) return null;
  const values = start as readonly unknown[];
  return readOlderFrame([
    ['c', ...values.slice(2, 7)],
    ['o', ...values.slice(7, 13)],
    [kind, 0, 1, [...values.slice(0, 2), ...values.slice(13)], end],
  ]);
}

/** What is read is no record, but what records refer to. */
const SHARED = Symbol('shared');

function readItem(
  item: readonly unknown[],
  shared: (Caller | AskedDeployment)[],
): ExecutionRecord | typeof SHARED | null {
  switch (item[0]) {
    case 'c': {
      const [, organizationId, teamId, userId, apiKeyId, walletId] = item as CallerForm;
      shared.push({ organizationId, teamId, userId, apiKeyId, walletId });
      return SHARED;
    }
    case 'o': {
      const [, api, requestedModel, model, provider, providerModel, priceVersion] = item as DeploymentForm;
      shared.push({ api, requestedModel, model, provider, providerModel, priceVersion });
      return SHARED;
    }
    case 'a': {
      const start = readStart(item, shared);
      return start && { type: 'admitted', ...start };
    }
    case 't': {
      const start = readStart(item, shared);
      const end = item[4];
      return start && Array.isArray(end) ? { type: 'terminal', ...start, ...readEnd(end as unknown as EndForm) } : null;
    }
    default:
      return null;
  }
}

function isNamed(value: unknown): value is ExecutionRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { type } = value as ExecutionRecord;
  return type === 'admitted' || type === 'terminal';
}

function readStart(item: readonly unknown[], shared: readonly (Caller | AskedDeployment)[]): ExecutionStart | null {
  const [, callerNumber, deploymentNumber, values] = item;
  const caller = shared[callerNumber as number];
  const deployment = shared[deploymentNumber as number];
  if (
    caller === undefined ||
    !('walletId' in caller) ||
    deployment === undefined ||
    !('api' in deployment) ||
    !Array.isArray(values)
  )
    return null;
  const form = values as unknown as StartForm;
  const route = form[7] ?? null;
  const budgets = form[8] ?? null;
  return {
    id: form[0],
    admittedAtMs: form[1],
    ...caller,
    ...deployment,
    streamed: form[2] === 1,
    clientRequestId: form[3],
    tags: form[4],
    authorizedAmount: form[5],
    requestBytes: form[6],
    ...(route === null ? NOTHING : { route }),
    ...(budgets === null ? NOTHING : { budgets }),
  };
}

function readEnd(form: EndForm): End {
  const responseId = form[14] ?? null;
  const baselineCost = form[15] ?? null;
  const budgetUse = form[16] ?? null;
  return {
    endedAtMs: form[0],
    outcome: form[1],
    status: form[2],
    errorCode: form[3],
    usage: form[4] === null ? null : readUsage(form[4]),
    usageSource: form[5],
    billingStatus: form[6],
    ratedCost: form[7],
    charge: form[8],
    suspense: form[9],
    latencyMs: form[10],
    ttftMs: form[11],
    responseBytes: form[12],
    ...(form[13] === 1 ? TRUNCATED : NOTHING),
    ...(responseId === null ? NOTHING : { responseId }),
    ...(baselineCost === null ? NOTHING : { baselineCost }),
    ...(budgetUse === null ? NOTHING : { budgetUse }),
  };
}

const NOTHING = {};
const TRUNCATED = { truncated: true };

function readUsage([
  inputTokens,
  cachedInputTokens,
  cacheWriteTokens,
  outputTokens,
  reasoningTokens,
  images,
]: UsageForm): Usage {
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, images };
}
