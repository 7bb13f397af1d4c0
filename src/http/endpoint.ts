// An endpoint as its requests need to know it: how its path and method are matched, and how refusals on it are written.

import type { AdmissionForm, EnvelopeName } from '../domain/refusals/render.ts';

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** It serves all methods that no other endpoint of its path has. `method` is then unused. */
  readonly anyMethod?: true;
  /** Literal segments, `:name`, and at its end `*`. */
  readonly path: string;
  /** HEAD is served by the same handler, which answers it without a body. */
  readonly answersHead?: true;
  /** The one parameter, at the end of the path, is the rest of it, slashes and all. */
  readonly takesRest?: true;
  /** No cache may keep its answers, nor its refusals, unless an answer says itself for how long. */
  readonly isNeverCached?: true;
  /** How refusals on this endpoint are written (spec 7). */
  readonly envelope: EnvelopeName;
  /** How admission refusals are; flat unless the operator switched the endpoint (spec 7.4). */
  readonly admissionForm?: AdmissionForm;
  /** The header in which also a refusal names the execution; of generations, which are recorded under it. */
  readonly executionIdHeader?: string;
}
