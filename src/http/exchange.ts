// One HTTP request and its response: what is answered and when, and whether the connection ends with it. The front
// (fronts/front.ts) knows how a response is written.
//
// A relay writes its response in parts: `begin`, then `write` or `writeOfTotal`, then `end`. Whoever has the whole
// answer calls `send` (`answer`, `answerJson`, `refuse`), which may have to wait for the body of the request:
//
//   send ─┬─ where the body ends is uncertain ──► answerBehindBody ──► once the body is dropped
//         ├─ the connection is to close ────────► answerAtTickEnd ───► answerNow
//         ├─ nothing of the body was seen yet ──► its first piece ───► answerSoon ──► answerNow
//         └─ else ──────────────────────────────► answerSoon ────────► answerNow
//
//   answerNow ─┬─ the whole body is here ──► answerWhole
//              └─ else ────────────────────► answerBeforeBody, and the rest of the body is dropped

import type { Principal } from '../domain/identity/principal.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { RenderedRefusal } from '../domain/refusals/render.ts';
import { CommitUnanswered, StoreAway } from '../platform/store-away.ts';
import { StoreBusy } from '../platform/store-busy.ts';
import type { ClientWatch } from './client-watch.ts';
import type { Endpoint } from './endpoint.ts';
import { type ExchangeContext, renderOn } from './exchange-context.ts';
import type { ClientRequest, ClientResponse, ResponseOwner } from './fronts/front.ts';
import type { RefusalWatch } from './refusal-watch.ts';
import { BODY_TIMEOUT_MS, type BodyOwner, RequestBody } from './request-body.ts';
import { RequestHead } from './request-head.ts';
import { type Answer, type HeaderList, NO_HEADERS } from './response-headers.ts';

export class Exchange extends RequestHead implements BodyOwner, ResponseOwner {
  readonly body: RequestBody;
  /** The response is complete or the connection gone: nothing may be written any more. */
  closed = false;
  /** The client left before the response was complete. */
  aborted = false;
  /** The principal of the request's credential; null: the credential is not known to be good. */
  principal: Principal | null = null;
  /** Records why the request is refused; null: nobody does. */
  refusalWatch: RefusalWatch | null = null;
  /** What guardrails did, as headers of every response that begins from here on. */
  screeningHeaders: HeaderList = NO_HEADERS;
  /** Likewise, the model that was chosen for a request to the virtual model. */
  routeHeaders: HeaderList = NO_HEADERS;
  /** Response bytes handed to the socket, body only. */
  responseBytes = 0;
  /** The HTTP status that was written; 0: none yet. */
  status = 0;

  private readonly response: ClientResponse;
  private readonly context: ExchangeContext;
  private clientWatch: ClientWatch | null = null;
  private writableListener: (() => void) | null = null;
  /** An answer of ours is chosen; it is written once the body has been seen or dropped. */
  private isAnswerChosen = false;
  private ownId: string | null = null;

  constructor(response: ClientResponse, request: ClientRequest, route: Endpoint, context: ExchangeContext) {
    super(request, route);
    this.response = response;
    this.context = context;
    const declaredBytes = this.transferEncoding === null ? Math.max(0, this.contentLength) : null;
    this.body = new RequestBody(declaredBytes, response, this, context);
    response.attach(this, this.isLastOfConnection);
    context.onOpen();
  }

  /**
   * The address that the request comes from; empty once the connection is gone. `x-forwarded-for` counts only if it
   * comes from a proxy that the operator trusts.
   */
  get source(): string {
    return this.closed ? '' : this.context.sourceOf(this.response.remoteAddress(), this.header('x-forwarded-for'));
  }

  /** The request's id, which is the execution's id if the request becomes one. Made when it is first asked for. */
  get id(): string {
    this.ownId ??= this.context.nextRequestId();
    return this.ownId;
  }

  onBodyFault(fault: unknown): void {
    this.tellClientLeft();
    this.fail(fault);
  }

  /** Code that waits for the body is told that the client has left. */
  onBodyLate(): void {
    if (this.status !== 0) return this.cut();
    this.tellClientLeft();
    this.refuse({ kind: 'request_timeout' });
  }

  /** Sets the one watch of this exchange, which is told at once if the client has already left. */
  watchClient(watch: ClientWatch | null): void {
    this.clientWatch = watch;
    if (this.aborted) watch?.onClientLeft();
  }

  /** Runs `write` with all its writes gathered into as few packets as possible. */
  cork(write: () => void): void {
    if (!this.closed) this.response.cork(write);
  }

  /**
   * Writes status and headers; call inside `cork`. `read`: headers of a provider's reply. They have no control
   * character, because the head was read strictly (upstream/http1/reply-head.ts); those that `passes` allows are
   * written.
   */
  begin(
    status: number,
    ownHeaders: HeaderList,
    read: HeaderList = NO_HEADERS,
    passes: (name: string) => boolean = PASSES_NONE,
  ): void {
    this.status = status;
    const found = this.routeHeaders.length + this.screeningHeaders.length;
    const own = found === 0 ? ownHeaders : [...ownHeaders, ...this.routeHeaders, ...this.screeningHeaders];
    const isComplete = this.context.crossOrigin === null && this.route.isNeverCached !== true;
    this.response.begin(status, isComplete ? own : this.withEndpointHeaders(own), read, passes);
  }

  private withEndpointHeaders(headers: HeaderList): HeaderList {
    const caching = this.route.isNeverCached === true && !headers.includes('cache-control') ? NO_STORE : NO_HEADERS;
    return [...headers, ...caching, ...(this.context.crossOrigin?.headersFor(this.header('origin')) ?? NO_HEADERS)];
  }

  /** Writes body bytes with chunked framing; false asks the caller to wait for `onWritable`. Call inside `cork`. */
  write(chunk: Uint8Array): boolean {
    this.responseBytes += chunk.byteLength;
    return this.response.write(chunk);
  }

  /**
   * Like `write`, for a response whose whole length is declared. The last byte ends it where the front can do that,
   * else `end` does.
   */
  writeOfTotal(chunk: Uint8Array, totalBytes: number): boolean {
    if (this.isLastOfConnection && this.responseBytes === 0 && chunk.byteLength === totalBytes) {
      this.end(chunk);
      return true;
    }
    this.responseBytes += chunk.byteLength;
    const room = this.response.writeOfTotal(chunk, totalBytes);
    if (room === 'complete') this.close();
    return room !== 'full';
  }

  /** Calls `listener` once, after a write returned false: when the socket has room again or has taken the last byte. */
  onWritable(listener: () => void): void {
    this.writableListener = listener;
    this.response.awaitRoom();
  }

  onRoom(isComplete: boolean): void {
    if (isComplete) this.close();
    const listener = this.writableListener;
    this.writableListener = null;
    listener?.();
  }

  /**
   * Ends a chunked response, or answers whole with a Content-Length when nothing was written before. Call inside
   * `cork`.
   */
  end(body?: Uint8Array | string): void {
    const hasNoBody = NEVER_WITH_BODY.has(this.status);
    if (this.isLastOfConnection && (this.responseBytes > 0 || hasNoBody)) return this.endConnection(body);
    // After a half-read body, its rest could not be told from a next request.
    const closes =
      this.responseBytes === 0 &&
      (this.isLastOfConnection || this.context.closing(this.principal !== null) || !this.body.isComplete);
    this.responseBytes += body?.length ?? 0;
    this.close(); // First: the front may call back into us while it ends.
    if (hasNoBody) this.response.endWithoutBody(null, closes);
    else this.response.end(body, closes);
  }

  /**
   * Ends a response, in chunks or without a body, after which nothing more of the connection may be read. The client
   * closes the connection. If it does not, the connection is closed after a while: closing it at once could lose bytes
   * that the socket has not taken yet.
   */
  private endConnection(body?: Uint8Array | string): void {
    this.responseBytes += body?.length ?? 0;
    this.close();
    this.response.endLast(body);
    this.body.drop(BODY_TIMEOUT_MS.leftOpen, () => this.response.close());
  }

  /**
   * Whether nothing after this request on its connection may become a request. A request's chunks are parsed laxly
   * (frame-guard.ts), so what follows them may be a part of the body.
   */
  private get isLastOfConnection(): boolean {
    return this.transferEncoding !== null;
  }

  /** Cuts the connection: the client must not take what it has for a complete response. */
  cut(): void {
    if (this.closed) return;
    this.close();
    this.response.close();
  }

  /** Answers with a complete response of ours. The client can read it also while it still sends its body. */
  answer(status: number, headers: HeaderList, body: string, closeConnection = false): void {
    this.send({ status, headers, body }, closeConnection);
  }

  send(answer: Answer, closeConnection = false): void {
    if (this.closed || this.isAnswerChosen) return;
    // Not written from within the handler: after an answer, uWebSockets.js would read what follows in the same packet
    // as a next request. While the answer is pending, a "next request" makes it close the connection without calling a
    // handler.
    if (!this.body.isComplete && (this.isLastOfConnection || !this.isFramingTrusted)) {
      this.answerBehindBody(answer);
    } else if (closeConnection || this.isLastOfConnection) {
      this.answerAtTickEnd(answer, true);
    } else if (this.body.state === 'unseen') {
      this.isAnswerChosen = true;
      this.body.resume();
      this.body.receive({ take: () => this.answerSoon(answer) });
    } else {
      this.answerSoon(answer);
    }
  }

  /**
   * Answers at once, unless this tick has answered many requests: all may come from one connection, which could keep
   * the tick from ever ending.
   */
  private answerSoon(answer: Answer): void {
    if (this.context.mayAnswerAtOnce()) this.answerNow(answer, false);
    else this.answerAtTickEnd(answer, false);
  }

  private answerAtTickEnd(answer: Answer, closeConnection: boolean): void {
    this.isAnswerChosen = true;
    this.body.watch();
    setImmediate(() => this.answerNow(answer, closeConnection));
  }

  private answerNow(answer: Answer, closeConnection: boolean): void {
    if (this.closed) return;
    if (!this.body.isComplete) this.answerBeforeBody(answer);
    else this.response.cork(() => this.answerWhole(answer, closeConnection));
  }

  private answerWhole({ status, headers, body, unsentBytes }: Answer, closeConnection: boolean): void {
    this.begin(status, headers);
    const bytes = unsentBytes ?? Buffer.byteLength(body);
    const close = closeConnection || this.context.closing(this.principal !== null);
    this.close();
    // uWebSockets.js would send the body of an answer to HEAD, too, and the client would take it for the next response.
    // Its own way to state a length without a body waits for the body all the same.
    if (this.method === 'head' || unsentBytes !== undefined) {
      // uWebSockets.js closes the connection only after a length of 0. A refusal may state that; for a file the client
      // closes.
      if (close && unsentBytes === undefined) return this.response.end('', true);
      return this.response.endWithoutBody(unsentBytes === null ? null : bytes, close);
    }
    this.responseBytes += bytes;
    this.response.end(body, close);
  }

  /**
   * Most clients read no answer before they have sent their body, and lose the answer if the connection closes before.
   * So the rest of the body is read and dropped for a while, and then the connection closes. To uWebSockets.js the
   * response is pending all the time: whatever it takes for a next request on this connection makes it close the
   * connection and reaches no handler.
   */
  private answerBeforeBody(answer: Answer): void {
    this.close();
    this.body.drop(BODY_TIMEOUT_MS.answered, () => this.response.close());
    this.status = answer.status;
    const isHead = this.method === 'head';
    if (!isHead) this.responseBytes += Buffer.byteLength(answer.body);
    const headers = this.withEndpointHeaders(answer.headers);
    this.response.cork(() => this.response.answerBeforeBody(answer.status, headers, answer.body, isHead));
  }

  /**
   * Where the end of the body is uncertain, what uWebSockets.js takes for the body is read and dropped before the
   * answer. uWebSockets.js may itself answer and close when it cannot parse the body, and there must be only one
   * response. Chunks that go on for long are treated as a large body, whose sender should read the answer.
   */
  private answerBehindBody(answer: Answer): void {
    this.isAnswerChosen = true;
    this.body.drop(BODY_TIMEOUT_MS.untrusted, (isWhole) => {
      if (this.isChunked && !isWhole) this.answerBeforeBody(answer);
      else this.response.cork(() => this.answerWhole(answer, true));
    });
  }

  /** Answers with a JSON value of ours; the text is written as given. */
  answerJson(status: number, json: string): void {
    this.answer(status, JSON_HEADERS, json);
  }

  /** Renders a refusal in this route's envelope; the one way a refusal leaves the product. */
  refuse(refusal: Refusal, ownHeaders: HeaderList = this.executionIdHeader): void {
    if (this.closed || this.isAnswerChosen) return;
    const rendered = this.renderRefusal(refusal);
    this.context.onRefusal(refusal.kind);
    // A refusal that cannot be recorded is answered, too.
    this.guard(() => this.refusalWatch?.onRefused(refusal));
    const headers = rendered.headers.flatMap(([name, value]) => [name, value]);
    headers.push(...ownHeaders);
    this.answer(rendered.status, headers, rendered.body, rendered.closesConnection);
  }

  /** The refusal in this route's envelope; also for a stream that ends with a refusal after it has begun. */
  renderRefusal(refusal: Refusal): RenderedRefusal {
    return renderOn(this.route, this.context, this.id, refusal);
  }

  private get executionIdHeader(): HeaderList {
    const { executionIdHeader } = this.route;
    return executionIdHeader === undefined ? NO_HEADERS : [executionIdHeader, this.id];
  }

  /** A fault (bug or lost dependency) ends this exchange: answered if nothing was sent yet, cut otherwise. */
  fail(fault: unknown): void {
    this.context.onFault(fault, this);
    if (this.closed) return;
    if (this.status === 0) this.refuse({ kind: kindOf(fault) });
    else this.cut();
  }

  onAborted(): void {
    this.body.close();
    if (this.closed) return;
    this.aborted = true;
    this.close();
    this.tellClientLeft();
  }

  private tellClientLeft(): void {
    const watch = this.clientWatch;
    this.clientWatch = null;
    this.guard(() => watch?.onClientLeft());
  }

  /** A fault of a watch is reported and changes nothing of the exchange. */
  private guard(callWatch: () => void): void {
    try {
      callWatch();
    } catch (fault) {
      this.context.onFault(fault, this);
    }
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    this.body.close();
    this.context.onClose();
  }
}

const PASSES_NONE = (): boolean => false;
/**
 * Statuses without a body. Their length is not stated: with a 204 it must not be (RFC 9110, 8.6), with a 304 it would
 * be that of another response.
 */
const NEVER_WITH_BODY: ReadonlySet<number> = new Set([204, 304]);
const JSON_HEADERS: HeaderList = ['content-type', 'application/json'];
const NO_STORE: HeaderList = ['cache-control', 'no-store'];

/** A database that is busy or away is no bug, and the request can be repeated, unless its change may have been made. */
function kindOf(fault: unknown): 'store_busy' | 'store_unavailable' | 'internal_error' {
  if (fault instanceof StoreBusy) return 'store_busy';
  if (fault instanceof CommitUnanswered) return 'internal_error';
  return fault instanceof StoreAway ? 'store_unavailable' : 'internal_error';
}
