// One HTTP request and its response. The only file that touches a uWebSockets.js response, so its rules are kept here once:
// - `HttpRequest` dies when the route handler returns: everything is copied in the constructor.
// - `onAborted` must be attached before the handler returns; after an abort the response must not be touched.
// - an `onData` chunk is emptied when the callback returns: a sink copies what it keeps.
// - writes outside a uWS callback go through `cork`, or each costs a packet and a syscall.
// - `write` returning false means: stop reading the source until `onWritable`; uWS buffers without limit otherwise.

import type { Refusal } from '../domain/refusals/refusal.ts';
import { type RenderContext, renderRefusal } from '../domain/refusals/render.ts';
import { statusLine } from '../domain/refusals/status-line.ts';
import { readContentLength } from '../platform/content-length.ts';
import { StoreBusy } from '../platform/store-busy.ts';
import type { HttpRequest, HttpResponse } from './native-server.ts';
import type { Route } from './route.ts';

/** Receives a request body. `bytes` is a view on memory that dies when the call returns. */
export interface BodySink {
  take(bytes: Uint8Array, isLast: boolean): void;
}

/** Whoever is told that the client left before its response was complete. */
export interface ClientWatch {
  onClientLeft(): void;
}

/** Header names and values, alternating; names in lower case. */
export type HeaderList = readonly string[];

export const NO_HEADERS: HeaderList = [];

const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

const SEEN_AUTHORIZATION = 1;
const SEEN_CONTENT_TYPE = 2;
const SEEN_HOST = 4;
const SEEN_CONTENT_LENGTH = 8;
const SEEN_API_KEY = 16;

export class Exchange {
  readonly route: Route;
  /** In lower case. */
  readonly method: string;
  /** As it was sent where the route leaves it open, else the route's. */
  readonly path: string;
  readonly query: string;
  readonly headers: string[] = [];
  /** Path parameters in the order of the route's path, as they were sent: not decoded. */
  readonly parameters: readonly string[];
  /** The request declared a transfer-encoding: its framing cannot be trusted (frame-guard.ts). */
  transferEncoded = false;
  /** Name of a header that must not repeat and did. */
  repeatedHeader: string | null = null;
  /** Declared body length; -1 when the header is absent or no plain number. */
  contentLength = -1;
  authorization = '';
  apiKey: string | null = null;
  contentType = '';
  /** Set once the response is complete or the connection is gone; nothing may be written afterwards. */
  closed = false;
  /** The client left before the response was complete. */
  aborted = false;
  /** Response bytes handed to the socket, body only. */
  responseBytes = 0;
  /** HTTP status written, 0 before. */
  status = 0;

  /** Headers that must not repeat and were seen; an empty one counts. */
  private seen = 0;
  /** A bit for each length of a name, so that most look-ups of one that is not there end at once. */
  private nameLengths = 0;
  private readonly response: HttpResponse;
  private readonly context: ExchangeContext;
  private clientWatch: ClientWatch | null = null;
  private writableListener: (() => void) | null = null;
  private watchingWritable = false;

  constructor(response: HttpResponse, request: HttpRequest, route: Route, context: ExchangeContext) {
    this.response = response;
    this.route = route;
    this.context = context;
    // What the route says already is not asked for: each question to uWebSockets.js makes a string.
    this.method = route.anyMethod === true ? request.getMethod() : METHODS[route.method];
    this.path = route.anyMethod === true || route.path.endsWith('*') ? request.getUrl() : route.path;
    // uWebSockets.js has undefined where there is no question mark.
    this.query = request.getQuery() ?? '';
    this.parameters = route.path.includes(':') ? readParameters(request, route.path) : NO_PARAMETERS;
    Exchange.readHeaders(request, this);
    response.onAborted(() => this.abort());
    context.onOpen();
  }

  /** uWebSockets.js calls back at once, so one function does for all: one made for each request costs it a little each time. */
  private static readHeaders(request: HttpRequest, exchange: Exchange): void {
    Exchange.reading = exchange;
    request.forEach(Exchange.onHeader);
    Exchange.reading = null;
  }
  private static reading: Exchange | null = null;
  private static readonly onHeader = (name: string, value: string): void => Exchange.reading?.readHeader(name, value);

  private readHeader(name: string, value: string): void {
    this.headers.push(name, value);
    this.nameLengths |= 1 << name.length;
    switch (name) {
      case 'transfer-encoding':
        this.transferEncoded = true;
        break;
      case 'content-length':
        this.seeOnce(SEEN_CONTENT_LENGTH, name);
        this.contentLength = readContentLength(value);
        break;
      case 'authorization':
        this.seeOnce(SEEN_AUTHORIZATION, name);
        this.authorization = value;
        break;
      case 'content-type':
        this.seeOnce(SEEN_CONTENT_TYPE, name);
        this.contentType = value;
        break;
      case 'x-api-key':
        this.seeOnce(SEEN_API_KEY, name);
        this.apiKey = value;
        break;
      case 'host':
        this.seeOnce(SEEN_HOST, name);
        break;
      default:
    }
  }

  private seeOnce(bit: number, name: string): void {
    if ((this.seen & bit) !== 0) this.repeatedHeader = name;
    this.seen |= bit;
  }

  /** First path parameter, when the route has one. */
  get parameter(): string | undefined {
    return this.parameters[0];
  }

  /** Value of the first header with this lower-case name, or null. */
  header(name: string): string | null {
    if ((this.nameLengths & (1 << name.length)) === 0) return null;
    const headers = this.headers;
    for (let index = 0; index < headers.length; index += 2) {
      if (headers[index] === name) return headers[index + 1] as string;
    }
    return null;
  }

  /** All values of a header that may repeat. */
  headerValues(name: string): string[] {
    const values: string[] = [];
    for (let index = 0; index < this.headers.length; index += 2) {
      if (this.headers[index] === name) values.push(this.headers[index + 1] as string);
    }
    return values;
  }

  /** Attaches the body reader; only valid before the route handler returns. The sink is not called after an abort. */
  receiveBody(sink: BodySink): void {
    this.response.onData((chunk, isLast) => {
      if (this.closed) return;
      try {
        sink.take(new Uint8Array(chunk), isLast);
      } catch (fault) {
        this.fail(fault);
      }
    });
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
   * Writes status and headers; call inside `cork`. `read`: headers of a head that was read strictly (relay/http1/reply-head.ts) and so has no control
   * character in it; those of them go along that `passes` lets.
   */
  begin(status: number, headers: HeaderList, read: HeaderList = NO_HEADERS, passes: (name: string) => boolean = NONE): void {
    this.status = status;
    // uWebSockets.js writes `200 OK` by itself.
    if (status !== 200) this.response.writeStatus(statusLine(status));
    // It writes name and value as they are: all lines are the value of the first name, since each call of it costs more than a line does.
    let first: string | null = null;
    let lines: string | null = null;
    for (let index = 0; index < headers.length; index += 2) {
      const name = headers[index] as string;
      const value = headers[index + 1] as string;
      // It does not check: response splitting is ours to prevent (DESIGN 3).
      if (!mayStandInHeader(value)) continue;
      first ??= name;
      lines = withHeader(lines, name, value);
    }
    for (let index = 0; index < read.length; index += 2) {
      const name = read[index] as string;
      if (!passes(name)) continue;
      first ??= name;
      lines = withHeader(lines, name, read[index + 1] as string);
    }
    if (first !== null && lines !== null) this.response.writeHeader(first, lines);
  }

  /** Writes body bytes with chunked framing; false asks the caller to wait for `onWritable`. Call inside `cork`. */
  write(chunk: Uint8Array): boolean {
    this.responseBytes += chunk.byteLength;
    return this.response.write(chunk);
  }

  /** Writes body bytes of a response whose whole length is declared; false asks the caller to wait for `onWritable`. */
  writeOfTotal(chunk: Uint8Array, totalBytes: number): boolean {
    const offset = this.response.getWriteOffset();
    const [taken, complete] = this.response.tryEnd(chunk, totalBytes);
    this.responseBytes += chunk.byteLength;
    if (complete) {
      this.close();
      return true;
    }
    if (taken) return true;
    // uWS does not keep what the socket did not take: the rest is sent from here when the socket drains.
    const unsent = chunk.subarray(this.response.getWriteOffset() - offset);
    this.unsent = { bytes: unsent, totalBytes };
    this.watchWritable();
    return false;
  }
  private unsent: { bytes: Uint8Array; totalBytes: number } | null = null;

  /** Called once after a write returned false, when the socket has room again. */
  onWritable(listener: () => void): void {
    this.writableListener = listener;
    this.watchWritable();
  }

  private watchWritable(): void {
    if (this.watchingWritable) return;
    this.watchingWritable = true;
    this.response.onWritable(() => {
      if (this.closed) return true;
      const unsent = this.unsent;
      if (unsent !== null) {
        this.unsent = null;
        const offset = this.response.getWriteOffset();
        const [taken, complete] = this.response.tryEnd(unsent.bytes, unsent.totalBytes);
        if (complete) {
          this.close();
          return true;
        }
        if (!taken) {
          this.unsent = { bytes: unsent.bytes.subarray(this.response.getWriteOffset() - offset), totalBytes: unsent.totalBytes };
          return false;
        }
      }
      const listener = this.writableListener;
      this.writableListener = null;
      listener?.();
      return true;
    });
  }

  /** Ends a chunked response, or answers whole with a Content-Length when nothing was written before. Call inside `cork`. */
  end(body?: Uint8Array | string): void {
    if (body !== undefined) this.responseBytes += body.length;
    // The response is marked closed first: uWS may call back into us while it ends.
    this.close();
    this.response.end(body, this.context.closing());
  }

  /** Cuts the connection: the client must not take what it has for a complete response (DESIGN 3). */
  cut(): void {
    if (this.closed) return;
    this.close();
    this.response.close();
  }

  /** Answers with a complete response of ours. */
  answer(status: number, headers: HeaderList, body: string, closeConnection = false): void {
    if (!closeConnection) {
      this.answerNow(status, headers, body, false);
      return;
    }
    // Not from within the handler: once it is answered, uWebSockets.js would go on to read what follows in the same packet as a next request.
    // While the answer is pending, a "next request" makes it close the connection without calling a handler.
    setImmediate(() => this.answerNow(status, headers, body, true));
  }

  private answerNow(status: number, headers: HeaderList, body: string, closeConnection: boolean): void {
    if (this.closed) return;
    this.response.cork(() => {
      this.begin(status, headers);
      const bytes = Buffer.byteLength(body);
      const close = closeConnection || this.context.closing();
      this.close();
      // uWebSockets.js would send the body of an answer to HEAD too, and the client would read it as the beginning of its next response.
      // Its own way to report a length without a body waits for the body all the same.
      if (this.method === 'head') {
        if (close) this.response.end('', true);
        else this.response.writeHeader('content-length', String(bytes)).endWithoutBody();
        return;
      }
      this.responseBytes += bytes;
      this.response.end(body, close);
    });
  }

  /** Answers with a JSON value of ours; the text is written as given. */
  answerJson(status: number, json: string): void {
    this.answer(status, JSON_HEADERS, json);
  }

  /** Renders a refusal in this route's envelope; the one way a refusal leaves the product. */
  refuse(refusal: Refusal, extraHeaders: HeaderList = []): void {
    if (this.closed) return;
    const { envelope, admissionForm = 'flat' } = this.route;
    const rendered = renderRefusal(refusal, envelope, { ...this.context.renderContext, admissionForm });
    this.context.onRefusal(refusal.kind);
    const headers = rendered.headers.flatMap(([name, value]) => [name, value]);
    headers.push(...extraHeaders);
    this.answer(rendered.status, headers, rendered.body, rendered.closesConnection);
  }

  /** A fault (bug or lost dependency) ends this exchange: answered if nothing was sent yet, cut otherwise. */
  fail(fault: unknown): void {
    this.context.onFault(fault, this);
    if (this.closed) return;
    if (this.status === 0) this.refuse({ kind: fault instanceof StoreBusy ? 'store_busy' : 'internal_error' });
    else this.cut();
  }

  private abort(): void {
    if (this.closed) return;
    this.aborted = true;
    this.close();
    const watch = this.clientWatch;
    this.clientWatch = null;
    try {
      watch?.onClientLeft();
    } catch (fault) {
      this.context.onFault(fault, this);
    }
  }

  private close(): void {
    if (this.closed) return;
    this.closed = true;
    this.context.onClose();
  }
}

const NONE = (): boolean => false;

/** The value of the first header with all lines behind it; `lines`: those before, null for the first. */
function withHeader(lines: string | null, name: string, value: string): string {
  return lines === null ? value : `${lines}\r\n${name}: ${value}`;
}

/** Not with what would end its line, or be read as if it did. */
function mayStandInHeader(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code === CR || code === LF || code === 0) return false;
  }
  return true;
}

const CR = 0x0d;
const LF = 0x0a;

const NO_PARAMETERS: readonly string[] = [];

function readParameters(request: HttpRequest, path: string): readonly string[] {
  return path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((_, index) => request.getParameter(index) ?? '');
}

const JSON_HEADERS: HeaderList = ['content-type', 'application/json'];

/** What an exchange asks of the server that made it. */
export interface ExchangeContext {
  readonly renderContext: RenderContext;
  /** True while draining: the connection ends with the response. */
  closing(): boolean;
  onOpen(): void;
  onClose(): void;
  onRefusal(kind: Refusal['kind']): void;
  onFault(fault: unknown, exchange: Exchange): void;
}
