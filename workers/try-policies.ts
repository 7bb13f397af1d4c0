// Worker task: finds what guardrail policies would match in a sample text. It compiles the policies' patterns, which
// may be slow.

import { findInText, type TriedText } from '../src/domain/guardrails/find-in-text.ts';
import type { TryPoliciesInput } from '../src/domain/guardrails/try-policies-task.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export default function tryPolicies({ policies, tried, begun }: TryPoliciesInput): TriedText {
  tellBegun(begun);
  return findInText(policies, tried);
}
