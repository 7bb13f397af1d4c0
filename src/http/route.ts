// The shape of one row of the route table (src/routes/routes.ts): an endpoint, and who handles its requests.

import type { Endpoint } from './endpoint.ts';
import type { Exchange } from './exchange.ts';

export interface Route extends Endpoint {
  /** It refuses every request and only says why, so a 405 of its path does not name its method. */
  readonly servesNothing?: true;
  /**
   * Called synchronously with the request's head; must attach a body reader (`exchange.body.receive`) before it returns
   * if it wants the body. May throw or reject: the exchange is then answered with `internal_error`.
   */
  readonly handle: (exchange: Exchange) => void | Promise<void>;
}
