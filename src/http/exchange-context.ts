// What an exchange asks of the server that made it.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { RenderContext } from '../domain/refusals/render.ts';
import type { Exchange } from './exchange.ts';

export interface ExchangeContext {
  readonly renderContext: RenderContext;
  /**
   * The connection ends with the response: while draining, and where there are too many to keep one of such a client.
   */
  closing(isKnown: boolean): boolean;
  /** A body behind its answer is read this far. */
  readonly droppedBytesMax: number;
  onOpen(): void;
  onClose(): void;
  /** Not all of a body came with its head, or it goes on behind its answer. */
  onBodyArriving(exchange: Exchange): void;
  onBodySettled(exchange: Exchange): void;
  /** Whom a connection comes from: `address` as uWebSockets.js has it, `forwardedFor` as the proxies in front say. */
  sourceOf(address: ArrayBuffer, forwardedFor: string | null): string;
  onRefusal(kind: Refusal['kind']): void;
  onFault(fault: unknown, exchange: Exchange): void;
}
