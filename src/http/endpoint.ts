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
  /** The only parameter, at the end of the path, takes the rest of the path, with its slashes. */
  readonly takesRest?: true;
  /** No cache may keep its answers and refusals, unless an answer itself says for how long. */
  readonly isNeverCached?: true;
  /** How refusals on this endpoint are written (spec 7). */
  readonly envelope: EnvelopeName;
  /** How admission refusals are written; flat unless the operator switched the endpoint (spec 7.4). */
  readonly admissionForm?: AdmissionForm;
  /** Only for generations, which are recorded: the header that names the execution, in a refusal as well. */
  readonly executionIdHeader?: string;
}
