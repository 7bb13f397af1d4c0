// What is logged of a failed call to a provider. Nothing in it comes from a body or is a credential.

import type { Deployment } from '../catalog/serving-catalog.ts';

export interface FailedCall {
  /** null: a call that the gateway makes for itself, or a call about a saved response. */
  readonly execution_id: string | null;
  readonly provider: string;
  /** The provider's own id of the model; null: the call is about a saved response. */
  readonly model: string | null;
  /** A connection fault, `key_refused`, `timeout`, or `status` for the status beside it. */
  readonly cause: string;
  /** The reply's status; null: there was no reply. */
  readonly status: number | null;
  /** Counts the calls of one request from 1. */
  readonly attempt: number;
}

export type ReportFailedCall = (call: FailedCall) => void;

/**
 * Whether a status says that the provider could not serve, whatever the request was. A caller's own mistake is no
 * failed call.
 */
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
