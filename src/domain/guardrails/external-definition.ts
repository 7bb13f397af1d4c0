// An external detector as people write it in a guardrail policy.

import { z } from 'zod';
import { webhookUrlProblem } from '../webhooks/webhook-url.ts';

const DEADLINE_MS_MAX = 30_000;

/** Whether a private address may be called is decided at each call: the platform's own policies may name one. */
export const externalDefinition = z.strictObject({
  shape: z.enum(['webhook', 'presidio', 'moderation']),
  url: z.string().superRefine((text, context) => {
    const problem = webhookUrlProblem(text, { allowHttp: true });
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  }),
  /** Sent as a bearer token. Kept apart from the policy's versions, and never shown. */
  secret: z
    .string()
    .regex(/^[\x21-\x7e]{1,1024}$/, 'must be visible ASCII characters without spaces')
    .optional(),
  deadline_ms: z.int('must be a whole number').min(1, 'must be at least 1').max(DEADLINE_MS_MAX).optional(),
  on_failure: z.enum(['refuse', 'pass']).optional(),
  /**
   * For streamed replies. `whole`: the reply waits until the detector has answered. `after`: the detector is asked
   * after the reply, and its rules can only flag.
   */
  output: z.enum(['whole', 'after']).optional(),
  model: z.string().min(1).max(200).optional(),
  language: z
    .string()
    .regex(/^[a-z]{2}$/, 'must be two small letters')
    .optional(),
});
