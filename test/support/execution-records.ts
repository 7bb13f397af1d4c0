// Execution records for tests: valid, distinct, and with amounts that are easy to add up.

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import type { AdmittedRecord, ExecutionStart, TerminalRecord } from '../../src/records/execution-record.ts';

const nextId = createExecutionIdSource(systemClock);
const ORGANIZATION_ID = randomUUID();
const API_KEY_ID = randomUUID();

export function executionStart(overrides: Partial<ExecutionStart> = {}): ExecutionStart {
  return {
    id: nextId(),
    admittedAtMs: systemClock.nowMs(),
    organizationId: ORGANIZATION_ID,
    teamId: null,
    userId: null,
    apiKeyId: API_KEY_ID,
    walletId: null,
    api: 'chat_completions',
    requestedModel: 'gpt-x',
    model: 'openai/gpt-x',
    provider: 'openai',
    providerModel: 'gpt-x-2026-05-01',
    priceVersion: '1',
    streamed: false,
    clientRequestId: null,
    tags: [],
    authorizedAmount: null,
    requestBytes: 512,
    ...overrides,
  };
}

export function admittedRecord(start: ExecutionStart = executionStart()): AdmittedRecord {
  return { type: 'admitted', ...start };
}

export function terminalRecord(
  start: ExecutionStart = executionStart(),
  overrides: Partial<TerminalRecord> = {},
): TerminalRecord {
  return {
    type: 'terminal',
    ...start,
    endedAtMs: start.admittedAtMs + 250,
    outcome: 'completed',
    status: 200,
    errorCode: null,
    usage: {
      inputTokens: 120,
      cachedInputTokens: 20,
      cacheWriteTokens: null,
      outputTokens: 30,
      reasoningTokens: null,
      images: null,
    },
    usageSource: 'reported',
    billingStatus: start.walletId === null ? 'not_billed' : 'final',
    ratedCost: '427500000',
    charge: start.walletId === null ? null : '427500000',
    suspense: '0',
    latencyMs: 250,
    ttftMs: 40,
    responseBytes: 2048,
    ...overrides,
  };
}
