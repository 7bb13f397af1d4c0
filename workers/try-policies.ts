// Worker task: what policies would find in a text that somebody tries them on. Their patterns are compiled for it, and
// nobody has promised that they are fast.

import { findInText, type TriedText } from '../src/domain/guardrails/find-in-text.ts';
import type { TryPoliciesInput } from '../src/domain/guardrails/try-policies-task.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export default function tryPolicies({ policies, tried, begun }: TryPoliciesInput): TriedText {
  tellBegun(begun);
  return findInText(policies, tried);
}
