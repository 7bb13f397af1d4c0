// The head of a request, copied while the route handler runs, because its front may drop it afterwards.

import { readContentLength } from '../platform/bytes/content-length.ts';
import type { Endpoint } from './endpoint.ts';
import type { ClientRequest } from './fronts/front.ts';

/** Method names as a front has them. */
export const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

/** Headers that must not be repeated. No two of these names have the same length. */
const ONCE = ['authorization', 'content-type', 'host', 'content-length', 'x-api-key', 'transfer-encoding'] as const;
type OnceName = (typeof ONCE)[number];
/** The same names by length, so that a header's name is compared with one of them at most. */
const ONCE_BY_LENGTH: (OnceName | undefined)[] = [];
for (const name of ONCE) ONCE_BY_LENGTH[name.length] = name;

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

  /** Which of `ONCE` have been seen, also with an empty value: one bit for each, by its length. */
  private seen = 0;
  /** One bit for each length of a name, so that most look-ups of absent headers end at once. */
  private nameLengths = 0;

  constructor(request: ClientRequest, route: Endpoint) {
    this.route = route;
    // Each call into uWebSockets.js makes a string, so nothing is asked that the route tells already.
    this.method = route.anyMethod === true || route.answersHead === true ? request.getMethod() : METHODS[route.method];
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
  private static readHeaders(request: ClientRequest, head: RequestHead): void {
    RequestHead.reading = head;
    request.forEach(RequestHead.onHeader);
    RequestHead.reading = null;
  }
  private static reading: RequestHead | null = null;
  private static readonly onHeader = (name: string, value: string): void =>
    RequestHead.reading?.readHeader(name, value);

  private readHeader(name: string, value: string): void {
    const { length } = name;
    this.headers.push(name, value);
    this.nameLengths |= 1 << length;
    const once = ONCE_BY_LENGTH[length];
    if (once !== undefined && once === name) this.readOnce(once, value);
  }

  private readOnce(name: OnceName, value: string): void {
    const bit = 1 << name.length;
    if ((this.seen & bit) !== 0) this.repeatedHeader = name;
    this.seen |= bit;
    switch (name) {
      case 'transfer-encoding':
        this.transferEncoding = value;
        break;
      case 'content-length':
        this.contentLength = readContentLength(value);
        break;
      case 'authorization':
        this.authorization = value;
        break;
      case 'content-type':
        this.contentType = value;
        break;
      case 'x-api-key':
        this.apiKey = value;
        break;
      case 'host':
        // A proxy may join repeated headers with a comma, and no host name has one.
        if (value.includes(',')) this.repeatedHeader = name;
    }
  }

  /** The body comes in chunks, and nothing else is said of its length. */
  get isChunked(): boolean {
    const { transferEncoding, seen } = this;
    return (
      transferEncoding !== null &&
      (seen & (1 << 'content-length'.length)) === 0 &&
      transferEncoding.toLowerCase() === 'chunked'
    );
  }

  /** Whether the request states in one way only where its body ends. Otherwise it is refused (frame-guard.ts). */
  get isFramingTrusted(): boolean {
    return this.repeatedHeader === null && (this.transferEncoding === null || this.isChunked);
  }

  /**
   * Whether the target has only visible ASCII characters (RFC 3986). node:http refuses other targets by itself (RFC
   * 9112, 3); uWebSockets.js decodes them as UTF-8, which may lose bytes.
   */
  get isTargetPlain(): boolean {
    return isPlain(this.path) && isPlain(this.query) && this.parameters.every(isPlain);
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
/** All but visible ASCII. */
const NOT_IN_TARGET = /[^\x21-\x7e]/;

function isPlain(part: string): boolean {
  return !NOT_IN_TARGET.test(part);
}

function readParameters(request: ClientRequest, { path, takesRest }: Endpoint): readonly string[] {
  if (takesRest === true) return [request.getUrl().slice(path.indexOf(':'))];
  return path
    .split('/')
    .filter((segment) => segment.startsWith(':'))
    .map((_, index) => request.getParameter(index) ?? '');
}
