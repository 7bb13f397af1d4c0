// Job: messages that were given up are kept for a month, to be sent again when somebody asks for it.

import { forgetDeliveries } from '../../src/storage/postgres/webhooks/webhook-deliveries.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldWebhookDeliveries({ postgres }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetDeliveries(postgres, KEPT_DAYS) };
}
