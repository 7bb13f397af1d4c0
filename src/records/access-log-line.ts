// The access log: the fields of its lines, one line for each ended execution, and the names of its files. jobs writes
// the lines; `tollgate logs` reads them.

import { join } from 'node:path';
import { formatUsdString } from '../domain/money/format.ts';
import type { TerminalRecord } from './execution-record.ts';

/** The most files that the log has, including the one that is being written. */
export const ACCESS_LOG_FILES = 5;
/**
 * Control characters and line separators that JSON.stringify does not escape. A client chooses the text of
 * `requested_model`, and a terminal or a line reader would act on such a character.
 */
const CONTROLS_UNESCAPED_BY_JSON = /[\u007f-\u009f\u2028\u2029]/g;

export interface AccessLogEntry {
  /** When the execution ended, ISO 8601. */
  readonly time: string;
  readonly id: string;
  readonly api: string;
  /** The model as the client wrote it. */
  readonly requested_model: string;
  readonly model: string;
  /** null: no provider was called. */
  readonly provider: string | null;
  readonly streamed: boolean;
  /** HTTP status that the client got; null: the client left before a status was sent. */
  readonly status: number | null;
  readonly error: string | null;
  readonly outcome: string;
  readonly latency_ms: number;
  readonly ttft_ms: number | null;
  readonly tokens_prompt: number | null;
  readonly tokens_completion: number | null;
  /** What the wallet pays, in US dollars as a decimal string; null: not billed, or not known. */
  readonly cost: string | null;
  readonly billing_status: string;
  /** The number of calls to providers. */
  readonly attempts: number;
  readonly tier: string | null;
  readonly guardrail: string | null;
  readonly organization_id: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly api_key_id: string;
  readonly client_request_id: string | null;
}

/** The path of a log file. `age` 0 is the file that is being written; higher ages are older files. */
export function accessLogFile(dataDirectory: string, age: number): string {
  return join(dataDirectory, age === 0 ? 'access.jsonl' : `access.${age}.jsonl`);
}

export function accessLogLine(record: TerminalRecord): string {
  const called = record.provider === '' ? 0 : 1;
  const entry: AccessLogEntry = {
    time: new Date(record.endedAtMs).toISOString(),
    id: record.id,
    api: record.api,
    requested_model: record.requestedModel,
    model: record.model,
    provider: called === 0 ? null : record.provider,
    streamed: record.streamed,
    status: record.status,
    error: record.errorCode,
    outcome: record.outcome,
    latency_ms: Math.round(record.latencyMs),
    ttft_ms: record.ttftMs === null ? null : Math.round(record.ttftMs),
    tokens_prompt: record.usage?.inputTokens ?? null,
    tokens_completion: record.usage?.outputTokens ?? null,
    cost: record.charge === null ? null : formatUsdString(BigInt(record.charge)),
    billing_status: record.billingStatus,
    attempts: record.attempts?.length ?? called,
    tier: record.route?.tier ?? null,
    guardrail: record.guardrail ?? null,
    organization_id: record.organizationId,
    team_id: record.teamId,
    user_id: record.userId,
    api_key_id: record.apiKeyId,
    client_request_id: record.clientRequestId,
  };
  return `${JSON.stringify(entry).replaceAll(CONTROLS_UNESCAPED_BY_JSON, escaped)}\n`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
