// What the log is told of a call to a provider that failed. Nothing in it comes from a body or is a credential.

import type { Deployment } from '../catalog/serving-catalog.ts';

export interface FailedCall {
  /** null: a call of the gateway's own, or one about a saved response. */
  readonly execution_id: string | null;
  readonly provider: string;
  /** The provider's own id of the model; null: the call is about a saved response. */
  readonly model: string | null;
  /** A fault of the connection, `key_refused`, `timeout`, or `status` for the status beside it. */
  readonly cause: string;
  /** Of a reply; null: there was none. */
  readonly status: number | null;
  /** Counts the calls of one request from 1. */
  readonly attempt: number;
}

export type ReportFailedCall = (call: FailedCall) => void;

/** The provider could not serve, whatever the request was: what a caller has done wrong is no failed call. */
export function isFailure(status: number): boolean {
  return status === 429 || status >= 500;
}

export function failedCall(
  { provider, providerModel }: Deployment,
  cause: string,
  { executionId = null, status = null, attempt = 1 }: Partial<FailedCallFacts>,
): FailedCall {
  return { execution_id: executionId, provider: provider.id, model: providerModel, cause, status, attempt };
}

interface FailedCallFacts {
  readonly executionId: string | null;
  readonly status: number | null;
  readonly attempt: number;
}
