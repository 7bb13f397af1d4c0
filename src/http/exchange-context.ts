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
   * Whether the connection ends with the response: while draining, and when so many connections are open that none is
   * kept for such a client. `isKnown`: the request has a good credential.
   */
  closing(isKnown: boolean): boolean;
  /**
   * Whether an answer may be written in the tick that chose it; else it waits for the tick's end. While an answer
   * waits, uWebSockets.js calls no handler for a request that follows on the connection, and closes the connection.
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
