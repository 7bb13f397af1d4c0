// How a record lies in a spool: as JSON arrays of its values in the order below, half as long as an object with names. Every request writes two
// records, and what they cost is their bytes.
//
//   ["a", [start]]     admitted            ["t", [start], [end]]     terminal
//
// A value is only ever added behind the others; a record that lacks some was written before there were any, or has none of them.

import type { Usage } from '../usage/usage.ts';
import type { ExecutionRecord, ExecutionStart, TerminalRecord } from './execution-record.ts';

type Start = ExecutionStart;
type End = Omit<TerminalRecord, keyof ExecutionStart | 'type'>;
type Flag = 0 | 1;
type Count = number | null;

type StartForm = readonly [
  id: Start['id'],
  admittedAtMs: Start['admittedAtMs'],
  organizationId: Start['organizationId'],
  teamId: Start['teamId'],
  userId: Start['userId'],
  apiKeyId: Start['apiKeyId'],
  walletId: Start['walletId'],
  api: Start['api'],
  requestedModel: Start['requestedModel'],
  model: Start['model'],
  provider: Start['provider'],
  providerModel: Start['providerModel'],
  priceVersion: Start['priceVersion'],
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

type UsageForm = readonly [input: Count, cachedInput: Count, cacheWrite: Count, output: Count, reasoning: Count, images: Count];

/** The record of a parsed value; null when it is none. Records of older versions are objects with names. */
export function readRecordForm(value: unknown): ExecutionRecord | null {
  if (!Array.isArray(value)) return isNamed(value) ? value : null;
  const [type, start, end] = value as readonly unknown[];
  if (type === 'a' && Array.isArray(start)) return { type: 'admitted', ...readStart(start as unknown as StartForm) };
  if (type !== 't' || !Array.isArray(start) || !Array.isArray(end)) return null;
  return { type: 'terminal', ...readStart(start as unknown as StartForm), ...readEnd(end as unknown as EndForm) };
}

function isNamed(value: unknown): value is ExecutionRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { type } = value as ExecutionRecord;
  return type === 'admitted' || type === 'terminal';
}

function readStart(form: StartForm): ExecutionStart {
  const route = form[18] ?? null;
  const budgets = form[19] ?? null;
  return {
    id: form[0],
    admittedAtMs: form[1],
    organizationId: form[2],
    teamId: form[3],
    userId: form[4],
    apiKeyId: form[5],
    walletId: form[6],
    api: form[7],
    requestedModel: form[8],
    model: form[9],
    provider: form[10],
    providerModel: form[11],
    priceVersion: form[12],
    streamed: form[13] === 1,
    clientRequestId: form[14],
    tags: form[15],
    authorizedAmount: form[16],
    requestBytes: form[17],
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

function readUsage([inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, images]: UsageForm): Usage {
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens, images };
}
