// One HTTP request and its response: what is answered when, and behind which the connection ends. How it is written is
// its front's (fronts/front.ts).

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
  /** Whom the request's credential stands for; null: it is not known to be a good one. */
  principal: Principal | null = null;
  /** null: nobody records what the request is refused for. */
  refusalWatch: RefusalWatch | null = null;
  /** What guardrails did, as headers of every response that begins from here on. */
  screeningHeaders: HeaderList = NO_HEADERS;
  /** Likewise the model that was chosen for a request that names none. */
  routeHeaders: HeaderList = NO_HEADERS;
  /** Response bytes handed to the socket, body only. */
  responseBytes = 0;
  /** HTTP status written, 0 before. */
  status = 0;

  private readonly response: ClientResponse;
  private readonly context: ExchangeContext;
  private clientWatch: ClientWatch | null = null;
  private writableListener: (() => void) | null = null;
  /** An answer of ours is chosen; it goes out once the body is seen, or dropped. */
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
   * Whom the request comes from, or through; empty once the connection is gone. Of all headers only proxies of the
   * operator's own are believed.
   */
  get source(): string {
    return this.closed ? '' : this.context.sourceOf(this.response.remoteAddress(), this.header('x-forwarded-for'));
  }

  /** By which its answer is found again: an execution's id, where it becomes one. Made when it is first asked for. */
  get id(): string {
    this.ownId ??= this.context.nextRequestId();
    return this.ownId;
  }

  onBodyFault(fault: unknown): void {
    this.tellWatch();
    this.fail(fault);
  }

  /** Whoever waits for the body is told the same as of a client that left. */
  onBodyLate(): void {
    if (this.status !== 0) return this.cut();
    this.tellWatch();
    this.refuse({ kind: 'request_timeout' });
  }

  /** One at a time; replaces an earlier one. Told at once if the client has already left. */
  watchClient(watch: ClientWatch | null): void {
    this.clientWatch = watch;
    if (this.aborted) watch?.onClientLeft();
  }

  /** Runs `write` with all its writes gathered into as few packets as possible. */
  cork(write: () => void): void {
    if (!this.closed) this.response.cork(write);
  }

  /**
   * Writes status and headers; call inside `cork`. `read`: headers of a head that was read strictly
   * (upstream/http1/reply-head.ts) and so has no control character in it; those of them go along that `passes` lets.
   */
  begin(
    status: number,
    ownHeaders: HeaderList,
    read: HeaderList = NO_HEADERS,
    passes: (name: string) => boolean = NONE,
  ): void {
    this.status = status;
    const found = this.routeHeaders.length + this.screeningHeaders.length;
    const own = found === 0 ? ownHeaders : [...ownHeaders, ...this.routeHeaders, ...this.screeningHeaders];
    const isComplete = this.context.crossOrigin === null && this.route.isNeverCached !== true;
    this.response.begin(status, isComplete ? own : this.withOfEndpoint(own), read, passes);
  }

  private withOfEndpoint(headers: HeaderList): HeaderList {
    const caching = this.route.isNeverCached === true && !headers.includes('cache-control') ? NO_STORE : NO_HEADERS;
    return [...headers, ...caching, ...(this.context.crossOrigin?.headersFor(this.header('origin')) ?? NO_HEADERS)];
  }

  /** Writes body bytes with chunked framing; false asks the caller to wait for `onWritable`. Call inside `cork`. */
  write(chunk: Uint8Array): boolean {
    this.responseBytes += chunk.byteLength;
    return this.response.write(chunk);
  }

  /** As `write`, of a response whose whole length is declared. The last byte ends it, or else `end`. */
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

  /** Called once after a write returned false, when the socket has room again, or has taken the last of the reply. */
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
    // What follows a half-read body cannot be told from it.
    const closes =
      this.responseBytes === 0 &&
      (this.isLastOfConnection || this.context.closing(this.principal !== null) || !this.body.isComplete);
    this.responseBytes += body?.length ?? 0;
    this.close(); // First: the front may call back into us while it ends.
    if (hasNoBody) this.response.endWithoutBody(null, closes);
    else this.response.end(body, closes);
  }

  /**
   * Ends a response in chunks, or of a head alone, behind which nothing of the connection may be read. The client
   * closes; one that does not is waited for a while, since what the socket has not taken yet would be lost.
   */
  private endConnection(body?: Uint8Array | string): void {
    this.responseBytes += body?.length ?? 0;
    this.close();
    this.response.endLast(body);
    this.body.drop(BODY_TIMEOUT_MS.leftOpen, () => this.response.close());
  }

  /**
   * Nothing that follows this request on its connection may become one. The chunks of a request are read laxly
   * (frame-guard.ts), so what follows them may be a part of it.
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
    // Not from within the handler: once it is answered, uWebSockets.js would go on to read what follows in the same
    // packet as a next request. While the answer is pending, a "next request" makes it close the connection without
    // calling a handler.
    if (!this.body.isComplete && (this.isLastOfConnection || !this.isFramingTrusted)) {
      this.answerBehindBody(answer);
    } else if (closeConnection || this.isLastOfConnection) {
      this.answerAtTickEnd(answer, true);
    } else if (this.body.state === 'unseen') {
      this.isAnswerChosen = true;
      this.body.letCome();
      this.body.receive({ take: () => this.answerSoon(answer) });
    } else {
      this.answerSoon(answer);
    }
  }

  /** At once, unless this tick has answered many: they may be of one connection, which would never let it end. */
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
    // uWebSockets.js would send the body of an answer to HEAD too, and its client take it for the next response. Its
    // own way to report a length without a body waits for the body all the same.
    if (this.method === 'head' || unsentBytes !== undefined) {
      // It closes only behind a length of 0, which a refusal may have, but not a file: there the client closes.
      if (close && unsentBytes === undefined) return this.response.end('', true);
      return this.response.endWithoutBody(unsentBytes === null ? null : bytes, close);
    }
    this.responseBytes += bytes;
    this.response.end(body, close);
  }

  /**
   * Most clients read no answer before they have sent their body, and lose it when the connection is closed under them.
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
    const headers = this.withOfEndpoint(answer.headers);
    this.response.cork(() => this.response.answerBeforeBody(answer.status, headers, answer.body, isHead));
  }

  /**
   * Where the body's end is not sure, what uWebSockets.js takes for the body is read and dropped first: it may answer
   * what it cannot read by itself and close, and there is to be one response. Chunks that go on for long are taken for
   * a large body, whose sender is to read the answer.
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
    // Also a refusal that cannot be recorded is answered.
    this.tell(() => this.refusalWatch?.onRefused(refusal));
    const headers = rendered.headers.flatMap(([name, value]) => [name, value]);
    headers.push(...ownHeaders);
    this.answer(rendered.status, headers, rendered.body, rendered.closesConnection);
  }

  /** As its route writes it; also for what a stream that has begun says of it. */
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
    this.tellWatch();
  }

  private tellWatch(): void {
    const watch = this.clientWatch;
    this.clientWatch = null;
    this.tell(() => watch?.onClientLeft());
  }

  private tell(watcher: () => void): void {
    try {
      watcher();
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

const NONE = (): boolean => false;
/** No length is said of them: of a 204 it must not be (RFC 9110, 8.6), of a 304 it would be another response's. */
const NEVER_WITH_BODY: ReadonlySet<number> = new Set([204, 304]);
const JSON_HEADERS: HeaderList = ['content-type', 'application/json'];
const NO_STORE: HeaderList = ['cache-control', 'no-store'];

/** A database that is busy or away is no bug, and the request can be repeated, unless its change may have been made. */
function kindOf(fault: unknown): 'store_busy' | 'store_unavailable' | 'internal_error' {
  if (fault instanceof StoreBusy) return 'store_busy';
  if (fault instanceof CommitUnanswered) return 'internal_error';
  return fault instanceof StoreAway ? 'store_unavailable' : 'internal_error';
}
