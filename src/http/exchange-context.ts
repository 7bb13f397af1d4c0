// What an exchange needs of the server that made it.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { RenderContext } from '../domain/refusals/render.ts';
import type { Exchange } from './exchange.ts';

export interface ExchangeContext {
  readonly renderContext: RenderContext;
  /**
   * Whether the connection ends with the response: while draining, and when too many connections are open to keep one
   * of such a client.
   */
  closing(isKnown: boolean): boolean;
  /** How many bytes of a body are read after its answer was sent. */
  readonly droppedBytesMax: number;
  onOpen(): void;
  onClose(): void;
  /** The body did not arrive completely with its head, or continues after its answer. */
  onBodyArriving(exchange: Exchange): void;
  onBodySettled(exchange: Exchange): void;
  /** The source of a connection. `address` is uWebSockets.js's value, `forwardedFor` the header of proxies in front. */
  sourceOf(address: ArrayBuffer, forwardedFor: string | null): string;
  onRefusal(kind: Refusal['kind']): void;
  onFault(fault: unknown, exchange: Exchange): void;
}
