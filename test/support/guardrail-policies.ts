// Guardrail policies for tests of detectors and of the code that acts on findings.

import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { type Finding, resolveOverlaps } from '../../src/domain/guardrails/finding.ts';
import type { Policy, Rule } from '../../src/domain/guardrails/policy.ts';
import { scanText } from '../../src/domain/guardrails/scan-text.ts';

export function ruleOf(rule: Partial<Rule> = {}): Rule {
  return {
    policy: 'default',
    version: 1,
    id: 'everything',
    action: 'mask',
    stages: ['input', 'output'],
    apis: null,
    label: null,
    cloak: { form: 'token', scope: 'organization', restore: true },
    detect: [],
    words: [],
    patterns: [],
    external: null,
    ...rule,
  };
}

export function policyOf(rules: readonly Rule[], policy: Partial<Policy> = {}): Policy {
  return {
    id: '00000000-0000-7000-8000-000000000001',
    name: 'default',
    version: 1,
    organizationId: null,
    onFailure: 'refuse',
    rules,
    allowedValues: [],
    allowedEmailDomains: [],
    externals: [],
    ...policy,
  };
}

export function compiledOf(...rules: readonly Rule[]): CompiledPolicy {
  const compiled = compilePolicy([policyOf(rules)], 'chat_completions');
  if (compiled === null) throw new Error('a policy without rules for chat completions');
  return compiled;
}

export function findingsIn(compiled: CompiledPolicy, text: string | Uint8Array): Finding[] {
  const bytes = Buffer.from(text);
  const findings: Finding[] = [];
  if (!scanText(compiled, 'input', bytes, 0, bytes.length, findings)) throw new Error('too many findings');
  return findings;
}

/** The entity and text of each finding that counts. */
export function foundIn(compiled: CompiledPolicy, text: string): (readonly [entity: string, value: string])[] {
  const bytes = Buffer.from(text);
  return resolveOverlaps(findingsIn(compiled, bytes)).map(({ entity, start, end }) => [
    entity,
    bytes.toString('utf8', start, end),
  ]);
}
