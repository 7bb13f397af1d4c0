// Reads a routing policy from a file of its own, in the form that it has in the configuration file: for trying a draft
// before it is published.

import { readPlainYaml } from '../configuration/plain-yaml.ts';
import { slugSchema } from '../configuration/schema/name-schemas.ts';
import { wordsOf, YAML_TYPES } from '../refusals/issue-words.ts';
import { type PolicyDefinition, policyDefinition } from './policy-definition.ts';

export type ParsedPolicy =
  | { readonly ok: true; readonly definition: PolicyDefinition }
  | { readonly ok: false; readonly errors: readonly string[] };

/** A name is allowed and ignored. */
const file = policyDefinition.extend({ name: slugSchema.optional() });

export function parsePolicyFile(text: string): ParsedPolicy {
  const plain = readPlainYaml(text);
  if (!plain.ok) return plain;
  const checked = file.safeParse(plain.value);
  if (!checked.success)
    return {
      ok: false,
      errors: checked.error.issues.map(
        (issue) => `${issue.path.length === 0 ? 'the file' : issue.path.join('.')}: ${wordsOf(issue, YAML_TYPES)}`,
      ),
    };
  const { name: _, ...definition } = checked.data;
  return { ok: true, definition };
}
