// Worker task: screens a request or a reply that is too big for the event loop, or whose rules have patterns.

import { type CompiledPolicy, compilePolicy } from '../src/domain/guardrails/compile-policy.ts';
import { RestorableValues } from '../src/domain/guardrails/placeholders.ts';
import type { ScreenTextInput } from '../src/domain/guardrails/screen-text-task.ts';
import { type ScreenedWhole, screenWhole } from '../src/domain/guardrails/screen-whole.ts';

/** Of the policies that this thread has screened by. */
const compiledByKey = new Map<string, CompiledPolicy>();
const COMPILED_MAX = 32;

export default function screenText(input: ScreenTextInput): ScreenedWhole | null {
  const compiled = compiledOf(input);
  if (compiled === null) return null;
  const { stage, places, parts, scopes, values, verdicts } = input;
  const body = Buffer.from(input.body.buffer, input.body.byteOffset, input.body.byteLength);
  const restorable = values === null ? null : new RestorableValues(values);
  return screenWhole(compiled, { stage, body, places, parts }, { scopes, values: restorable, verdicts });
}

function compiledOf({ key, policies, api }: ScreenTextInput): CompiledPolicy | null {
  const known = compiledByKey.get(key);
  if (known !== undefined) return known;
  const compiled = compilePolicy(policies, api);
  if (compiled === null) return null;
  if (compiledByKey.size >= COMPILED_MAX) compiledByKey.clear();
  compiledByKey.set(key, compiled);
  return compiled;
}
