// Job: deletes webhook messages a month after they were given up. Until then they can be sent again on request.

import { forgetDeliveries } from '../../src/storage/postgres/webhooks/webhook-deliveries.ts';
import type { JobContext, JobResult } from '../scheduling/job.ts';

const KEPT_DAYS = 30;

export async function forgetOldWebhookDeliveries({ postgres }: JobContext): Promise<JobResult> {
  return { forgotten: await forgetDeliveries(postgres, KEPT_DAYS) };
}
