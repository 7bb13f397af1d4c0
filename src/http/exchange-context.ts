// What an exchange needs of the server that made it.

import type { Refusal } from '../domain/refusals/refusal.ts';
import { type RenderContext, type RenderedRefusal, renderRefusal } from '../domain/refusals/render.ts';
import type { CrossOrigin } from './cross-origin.ts';
import type { Endpoint } from './endpoint.ts';
import type { BodyContext } from './request-body.ts';
import type { RequestHead } from './request-head.ts';

export interface ExchangeContext extends BodyContext {
  /** null: pages of other origins cannot read answers. */
  readonly crossOrigin: CrossOrigin | null;
  readonly renderContext: Pick<RenderContext, 'publicUrl'>;
  readonly nextRequestId: () => string;
  /**
   * Whether the connection ends with the response: while draining, and when too many connections are open to keep one
   * of such a client.
   */
  closing(isKnown: boolean): boolean;
  /**
   * Whether this answer goes out in the tick that chose it. Behind one that waits for the tick's end uWebSockets.js
   * calls no handler for what follows on the connection, and closes it.
   */
  mayAnswerAtOnce(): boolean;
  onOpen(): void;
  onClose(): void;
  /** The source of a connection. `address`: four bytes, or sixteen; `forwardedFor`: the header of proxies in front. */
  sourceOf(address: Uint8Array, forwardedFor: string | null): string;
  onRefusal(kind: Refusal['kind']): void;
  onFault(fault: unknown, request: RequestHead): void;
}

/** A refusal as its route writes it. */
export function renderOn(
  route: Endpoint,
  context: ExchangeContext,
  requestId: string,
  refusal: Refusal,
): RenderedRefusal {
  const { envelope, admissionForm = 'flat' } = route;
  const { publicUrl } = context.renderContext;
  return renderRefusal(refusal, envelope, { requestId, publicUrl, admissionForm });
}
