// Provides the policies in force to the control plane, and a worker that tries them on a text.

import type { GuardrailTrials } from '../../control-plane/guardrails/test-text.ts';
import type { TriedText } from '../../domain/guardrails/find-in-text.ts';
import type { TryPoliciesInput } from '../../domain/guardrails/try-policies-task.ts';
import { begunFlag } from '../../platform/begun-flag.ts';
import type { WorkerPool } from '../../platform/worker-pool.ts';
import type { HeldGuardrails } from '../generation/held-guardrails.ts';

/** Compiling a policy takes up to a tenth of a second, and searching 4 KB as much. */
const WORK_MS = 1_000;
/** How long a trial waits for a thread to become free, or to start and load the detectors on a busy machine. */
const WAIT_MS = 5_000;

interface Parts {
  readonly guardrails: Pick<HeldGuardrails, 'policiesOf'>;
  readonly workers: Pick<WorkerPool, 'run'>;
}

export function createGuardrailTrials({ guardrails, workers }: Parts): GuardrailTrials {
  return {
    policiesOf: (organizationId) => guardrails.policiesOf(organizationId),
    run: async (policies, tried) => {
      const begun = begunFlag();
      const input: TryPoliciesInput = { policies, tried, begun };
      const result = await workers.run<TriedText>('try-policies', input, {
        bytes: Buffer.byteLength(tried.text),
        deadlineMs: WAIT_MS + WORK_MS,
        work: { begun, deadlineMs: WORK_MS },
      });
      return result.ok ? result.value : null;
    },
  };
}
