// How compiled policies get to worker threads: packed by the event loop, unpacked and cached by each thread per set and
// API.

import type { ApiName } from '../models/apis.ts';
import { type CompiledPolicy, compilePolicy } from './compile-policy.ts';
import { type PackedPolicy, preparedOf, unpackPolicy } from './prepared-policy.ts';

const compiledByKey = new Map<string, CompiledPolicy>();
const COMPILED_MAX = 32;

export interface PackedPolicies {
  /** The key of the compiled policy. */
  readonly key: string;
  readonly policies: readonly PackedPolicy[];
  readonly api: ApiName;
}

export function packedOf({ key, policies, api }: CompiledPolicy): PackedPolicies {
  return { key, policies: policies.map((policy) => preparedOf(policy).packed), api };
}

export function compiledOf({ key, policies, api }: PackedPolicies): CompiledPolicy | null {
  const known = compiledByKey.get(key);
  if (known !== undefined) return known;
  const compiled = compilePolicy(policies.map(unpackPolicy), api);
  if (compiled === null) return null;
  if (compiledByKey.size >= COMPILED_MAX) compiledByKey.clear();
  compiledByKey.set(key, compiled);
  return compiled;
}
