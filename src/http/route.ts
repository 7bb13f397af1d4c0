// The shape of one row of the route table (src/routes/routes.ts): what the HTTP front needs to know of a route.

import type { AdmissionForm, EnvelopeName } from '../domain/refusals/render.ts';
import type { Exchange } from './exchange.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The row serves all methods that no other row of its path has. `method` is then unused. */
  readonly anyMethod?: true;
  /** uWebSockets.js pattern: literal segments, `:name`, and at its end `*`. */
  readonly path: string;
  /** How refusals on this route are written (spec 7). */
  readonly envelope: EnvelopeName;
  /** How admission refusals are; flat unless the operator switched the route (spec 7.4). */
  readonly admissionForm?: AdmissionForm;
  /**
   * Called synchronously with the request's head; must attach a body reader (`exchange.body.receive`) before it returns
   * if it wants the body. May throw or reject: the exchange is then answered with `internal_error`.
   */
  readonly handle: (exchange: Exchange) => void | Promise<void>;
}
