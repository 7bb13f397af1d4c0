// The compiled policies that a worker thread has screened by: a thread is given policies as plain data.

import type { ApiName } from '../models/apis.ts';
import { type CompiledPolicy, compilePolicy } from './compile-policy.ts';
import type { Policy } from './policy.ts';

const compiledByKey = new Map<string, CompiledPolicy>();
const COMPILED_MAX = 32;

export interface PlainPolicies {
  /** Of the compiled policy. */
  readonly key: string;
  readonly policies: readonly Policy[];
  readonly api: ApiName;
}

export function compiledOf({ key, policies, api }: PlainPolicies): CompiledPolicy | null {
  const known = compiledByKey.get(key);
  if (known !== undefined) return known;
  const compiled = compilePolicy(policies, api);
  if (compiled === null) return null;
  if (compiledByKey.size >= COMPILED_MAX) compiledByKey.clear();
  compiledByKey.set(key, compiled);
  return compiled;
}
