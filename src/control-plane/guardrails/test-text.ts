// What guardrails would find in a text, without calling anybody: neither a provider nor an external detector.

import { z } from 'zod';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { type TextToTry, TRIED_TEXT_BYTES_MAX, type TriedText } from '../../domain/guardrails/find-in-text.ts';
import { ACTIONS, type Policy } from '../../domain/guardrails/policy.ts';
import { guardrailDefinition, guardrailPolicyOf } from '../../domain/guardrails/policy-definition.ts';
import { API_NAMES } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { isRefused, type Refused } from '../../domain/refusals/refused.ts';
import { answerOf, refusalOf } from '../answers.ts';
import { ACTIVE } from '../identity/tenancy.ts';
import { type Operation, type OperationInput, operation } from '../operation.ts';
import type { GuardrailStore } from './guardrail-store.ts';
import type { PolicyOwner } from './policies.ts';

export interface GuardrailTrials {
  /** The policies in force for an organization as a whole. */
  readonly policiesOf: (organizationId: string) => readonly Policy[];
  /** Runs off the event loop, since drafts are tried, too. null: the result did not come in time. */
  readonly run: (policies: readonly Policy[], tried: TextToTry) => Promise<TriedText | null>;
}

const body = z
  .strictObject({
    text: z
      .string()
      .refine(
        (text) => Buffer.byteLength(text) <= TRIED_TEXT_BYTES_MAX,
        `must be at most ${TRIED_TEXT_BYTES_MAX} bytes`,
      ),
    policy: slugSchema.optional().meta({ description: 'The only policy to try. Left out: all policies in force.' }),
    definition: guardrailDefinition.optional().meta({ description: 'A draft, which is not stored.' }),
    stage: z.enum(['input', 'output']).optional().meta({ description: 'Left out: input.' }),
    api: z.enum(API_NAMES).optional().meta({ description: 'Left out: chat_completions.' }),
  })
  .refine(({ policy, definition }) => policy === undefined || definition === undefined, 'has policy and definition');
const shownFinding = z.object({
  policy: z.string(),
  version: z.int(),
  rule: z.string(),
  entity: z.string(),
  action: z.enum(ACTIONS),
  start: z.int().meta({ description: 'The position of the first character of the finding, in Unicode code points.' }),
  end: z.int().meta({ description: 'The position of the first character after the finding.' }),
});
const shown = z.object({
  findings: z.array(shownFinding),
  not_asked: z.array(z.string()).meta({ description: 'External detectors, which a test does not call.' }),
});

export function testText(store: GuardrailStore, trials: GuardrailTrials, owner: PolicyOwner): Operation {
  return operation({
    id: `testGuardrails${owner.suffix}`,
    summary: 'Shows what guardrails would find in a text. Nobody is called, and nothing is kept.',
    body,
    answer: answerOf(shown),
    run: async (input): Promise<{ data: z.output<typeof shown> } | Refusal> => {
      const policies = await choosePolicies(store, trials, owner, input);
      if (isRefused(policies)) return refusalOf(policies);
      const { text, stage = 'input', api = 'chat_completions' } = input.body;
      const tried = await trials.run(policies, { text, stage, api });
      if (tried === null) return { kind: 'guardrail_unavailable' };
      return { data: { findings: [...tried.findings], not_asked: [...tried.notAsked] } };
    },
  });
}

async function choosePolicies(
  store: GuardrailStore,
  { policiesOf }: GuardrailTrials,
  owner: PolicyOwner,
  input: OperationInput<unknown, z.output<typeof body>>,
): Promise<readonly Policy[] | Refused> {
  const { policy: name, definition } = input.body;
  const organizationId = owner.organizationId(input);
  const draft = { id: 'draft', name: 'draft', version: 0, organizationId };
  if (definition !== undefined) return [guardrailPolicyOf(draft, definition, new Map())];
  if (name === undefined) return organizationId === null ? [] : policiesOf(ACTIVE.organizationId(input));
  const found = await store.getPolicy({ organizationId, name, version: null });
  if (isRefused(found)) return found;
  const { version } = found;
  return [guardrailPolicyOf({ id: name, name, version, organizationId }, found.definition, new Map())];
}
