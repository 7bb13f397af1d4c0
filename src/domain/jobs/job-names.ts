// The names of the jobs, by which operators ask for one. jobs/scheduling/schedule.ts says what each job does and when.

export const JOB_NAMES = [
  'resolve-pending',
  'revoke-frozen',
  'rewrap-secrets',
  'check-own-keys',
  'check-pending',
  'check-ledger',
  'compare-facts',
  'compare-facts-daily',
  'compare-cells',
  'rebuild-facts',
  'forget-job-runs',
  'forget-refused-requests',
  'forget-saved-responses',
  'forget-webhook-deliveries',
  'forget-routing-turns',
  'forget-ended-sessions',
  'drop-old-facts',
  'retire-media',
  'seal-days',
  'sweep-media',
  'forget-past-limit-pools',
] as const;

export type JobName = (typeof JOB_NAMES)[number];
