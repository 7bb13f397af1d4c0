// Makes one attempt to deliver a webhook message to the address that a customer chose.

import { webhookUrlProblem } from '../../src/domain/webhooks/webhook-url.ts';
import type { EgressGuard } from '../../src/platform/egress/egress-guard.ts';
import { postRequest } from '../../src/platform/egress/post-request.ts';

export interface WebhookTargets {
  readonly allowHttp: boolean;
  /** Decides which addresses may be called. */
  readonly guard: EgressGuard;
}

export interface WebhookMessage {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const ANSWER_LIMIT_MS = 10_000;
const ERROR_LENGTH_MAX = 300;

/** null: the receiver answered 2xx; otherwise the error. Redirects are not followed. */
export async function sendWebhook(message: WebhookMessage, targets: WebhookTargets): Promise<string | null> {
  const { url, headers, body } = message;
  const problem = webhookUrlProblem(url, targets);
  if (problem !== null) return `the address ${problem}`;
  try {
    const { status } = await postRequest({
      url,
      headers: { ...headers, 'user-agent': 'tollgate-webhooks' },
      body: Buffer.from(body),
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      guard: targets.guard,
      // Only the status of the answer matters.
      answerBytesMax: 0,
    });
    return status >= 200 && status < 300 ? null : `answered ${status}`;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).slice(0, ERROR_LENGTH_MAX);
  }
}
