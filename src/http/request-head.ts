// The head of a request, copied while the route handler runs, because uWebSockets.js drops it afterwards.

import { readContentLength } from '../platform/content-length.ts';
import type { Endpoint } from './endpoint.ts';
import type { HttpRequest } from './native-server.ts';

const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

const SEEN_AUTHORIZATION = 1;
const SEEN_CONTENT_TYPE = 2;
const SEEN_HOST = 4;
const SEEN_CONTENT_LENGTH = 8;
const SEEN_API_KEY = 16;
const SEEN_TRANSFER_ENCODING = 32;

export class RequestHead {
  readonly route: Endpoint;
  /** In lower case. */
  readonly method: string;
  /** The path as sent where the route has a wildcard or takes the rest of it, otherwise the route's. */
  readonly path: string;
  readonly query: string;
  readonly headers: string[] = [];
  /** Path parameters in the order of the route's path, not decoded. */
  readonly parameters: readonly string[];
  /** Value of the header; null without one. */
  transferEncoding: string | null = null;
  /** The name of a header that was repeated and must not be. */
  repeatedHeader: string | null = null;
  /** Declared body length; -1 when the header is absent or no plain number. */
  contentLength = -1;
  authorization = '';
  apiKey: string | null = null;
  contentType = '';

  /** The headers that must not repeat and have been seen, also with an empty value. */
  private seen = 0;
  /** One bit for each length of a name, so that most look-ups of absent headers end at once. */
  private nameLengths = 0;

  constructor(request: HttpRequest, route: Endpoint) {
    this.route = route;
    // Each call of uWebSockets.js makes a string, so what the route tells is not asked for.
    this.method = route.anyMethod === true ? request.getMethod() : METHODS[route.method];
    this.path = route.anyMethod === true || route.takesRest === true ? request.getUrl() : route.path;
    // uWebSockets.js has undefined where there is no question mark.
    this.query = request.getQuery() ?? '';
    this.parameters = route.path.includes(':') ? readParameters(request, route) : NO_PARAMETERS;
    RequestHead.readHeaders(request, this);
  }

  /**
   * One function serves all requests, because uWebSockets.js calls back synchronously and a closure for each request
   * would cost time.
   */
  private static readHeaders(request: HttpRequest, head: RequestHead): void {
    RequestHead.reading = head;
    request.forEach(RequestHead.onHeader);
    RequestHead.reading = null;
  }
  private static reading: RequestHead | null = null;
  private static readonly onHeader = (name: string, value: string): void =>
    RequestHead.reading?.readHeader(name, value);

  private readHeader(name: string, value: string): void {
    this.headers.push(name, value);
    this.nameLengths |= 1 << name.length;
    switch (name) {
      case 'transfer-encoding':
        this.seeOnce(SEEN_TRANSFER_ENCODING, name);
        this.transferEncoding = value;
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

  /** The body comes in chunks, and nothing else is said of its length. */
  get isChunked(): boolean {
    const { transferEncoding, seen } = this;
    return (
      transferEncoding !== null && (seen & SEEN_CONTENT_LENGTH) === 0 && transferEncoding.toLowerCase() === 'chunked'
    );
  }

  /** Whether the request says in one way only where its body ends. Otherwise it is refused (frame-guard.ts). */
  get isFramingTrusted(): boolean {
    return this.repeatedHeader === null && (this.transferEncoding === null || this.isChunked);
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
}

const NO_PARAMETERS: readonly string[] = [];

function readParameters(request: HttpRequest, { path, takesRest }: Endpoint): readonly string[] {
  if (takesRest === true) return [request.getUrl().slice(path.indexOf(':'))];
  return path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((_, index) => request.getParameter(index) ?? '');
}
