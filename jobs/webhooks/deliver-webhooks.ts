// Delivers webhook messages (src/storage/postgres/webhooks/webhook-deliveries.ts): claims messages, sends each and
// records the result. Delivery is at least once: if a process dies after sending, its claim expires and the message is
// sent again under the same id.

import { signWebhook } from '../../src/domain/webhooks/webhook-signature.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { CounterCell, MetricsRegistry } from '../../src/platform/metrics.ts';
import { renderGeneration } from '../../src/records/generation.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { SecretBox } from '../../src/storage/postgres/secret-box.ts';
import {
  type ClaimedDelivery,
  claimDeliveries,
  deliveryFailed,
  deliverySucceeded,
} from '../../src/storage/postgres/webhooks/webhook-deliveries.ts';
import { sealedFor } from '../../src/storage/postgres/webhooks/webhooks.ts';
import { BackgroundLoop } from '../scheduling/background-loop.ts';
import { sendWebhook, type WebhookTargets } from './send-webhook.ts';

/** The pause after each failed attempt, two days in all. After the last attempt the message is dead. */
export const RETRY_AFTER_SECONDS: readonly number[] = [5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400, 57_600];

const POLL_MS = 1_000;
const UNDER_WAY_MAX = 128;
/** The limit for one webhook, so that a slow receiver leaves room for the others. */
const PER_WEBHOOK_MAX = 16;
/** Longer than an attempt can take. */
const CLAIM_SECONDS = 60;

export interface DelivererOptions {
  readonly postgres: Postgres;
  readonly box: SecretBox;
  readonly targets: WebhookTargets;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** The rest after a claim that found nothing; default: a second. */
  readonly pollMs?: number;
}

export class WebhookDeliverer {
  private readonly options: DelivererOptions;
  private readonly loop: BackgroundLoop;
  private readonly underWay = new Set<Promise<void>>();
  /** The number of attempts under way, by organization. */
  private readonly busy = new Map<string, number>();
  private readonly delivered: CounterCell;
  private readonly failed: CounterCell;

  constructor(options: DelivererOptions) {
    this.options = options;
    const attempts = options.metrics.counter(
      'tollgate_webhook_attempts_total',
      'Attempts to deliver a webhook message, by result.',
      ['result'],
    );
    this.delivered = attempts.labels('delivered');
    this.failed = attempts.labels('failed');
    const { pollMs = POLL_MS } = options;
    const step = async (): Promise<number> => ((await this.begin()) > 0 ? 0 : pollMs);
    this.loop = new BackgroundLoop({ name: 'delivering webhooks', log: options.log, step });
  }

  start(): void {
    this.loop.start();
  }

  /** Waits for attempts under way, which are bounded. */
  async stop(): Promise<void> {
    await this.loop.stop();
    await Promise.all(this.underWay);
  }

  private busyReceivers(): string[] {
    return [...this.busy].filter(([, count]) => count >= PER_WEBHOOK_MAX).map(([organizationId]) => organizationId);
  }

  private async begin(): Promise<number> {
    const max = UNDER_WAY_MAX - this.underWay.size;
    if (max <= 0) return 0;
    const order = { perWebhook: PER_WEBHOOK_MAX, max, forSeconds: CLAIM_SECONDS, except: this.busyReceivers() };
    const claimed = await claimDeliveries(this.options.postgres, order);
    for (const delivery of claimed) {
      const { organizationId } = delivery;
      this.busy.set(organizationId, (this.busy.get(organizationId) ?? 0) + 1);
      const attempt = this.attempt(delivery).finally(() => this.ended(attempt, organizationId));
      this.underWay.add(attempt);
    }
    return claimed.length;
  }

  /**
   * Wakes the loop if this webhook's limit or the limit of all webhooks had been reached. Only then can the last claim
   * have left due messages.
   */
  private ended(attempt: Promise<void>, organizationId: string): void {
    this.underWay.delete(attempt);
    const left = (this.busy.get(organizationId) ?? 1) - 1;
    if (left === 0) this.busy.delete(organizationId);
    else this.busy.set(organizationId, left);
    if (left === PER_WEBHOOK_MAX - 1 || this.underWay.size === UNDER_WAY_MAX - 1) this.loop.wake();
  }

  private async attempt(delivery: ClaimedDelivery): Promise<void> {
    const { organizationId, executionId, attempt } = delivery;
    try {
      const error = await this.send(delivery);
      if (error === null) {
        this.delivered.increment();
        await deliverySucceeded(this.options.postgres, delivery);
        return;
      }
      this.failed.increment();
      const retryAfterSeconds = RETRY_AFTER_SECONDS[attempt - 1] ?? null;
      if (retryAfterSeconds === null)
        this.options.log.error({ organizationId, executionId, error }, 'webhook: given up');
      await deliveryFailed(this.options.postgres, delivery, { error, retryAfterSeconds });
    } catch (error) {
      // The claim expires, and the message is sent again.
      this.options.log.warn(
        { err: error, organizationId, executionId },
        'webhook: the result of an attempt could not be recorded',
      );
    }
  }

  private async send({
    executionId,
    organizationId,
    settledAtMs,
    url,
    secretSealed,
    content,
  }: ClaimedDelivery): Promise<string | null> {
    let secret: string;
    try {
      secret = this.options.box.open(secretSealed, sealedFor(organizationId));
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    const timestamp = new Date(settledAtMs).toISOString();
    const [type, data] =
      'generation' in content
        ? ['generation.settled', renderGeneration(content.generation)]
        : [content.event, content.data];
    const body = `{"type":"${type}","timestamp":"${timestamp}","data":${data}}`;
    const timestampSeconds = Math.floor(this.options.clock.nowMs() / 1000);
    const headers = signWebhook(secret, { id: `msg_${executionId}`, timestampSeconds, body });
    return sendWebhook({ url, headers, body }, this.options.targets);
  }
}
