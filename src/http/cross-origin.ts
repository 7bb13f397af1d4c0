// Which pages of other origins may call the gateway from a browser (CORS): the additional headers of answers to them,
// and the answer to the preflight that a browser sends before a request that a form could not make.

export type OriginHeaders = readonly string[];

/** `*`, or origins as a browser sends them (`https://app.example`). */
export type CrossOrigins = '*' | ReadonlySet<string>;

const NONE: OriginHeaders = [];
const VARY: OriginHeaders = ['vary', 'origin'];
const METHODS = 'GET, POST, PUT, PATCH, DELETE';
/** Two hours, which is as long as Chromium remembers such an answer. */
const REMEMBERED_SECONDS = 7_200;
const NAMES_MAX = 4_096;
/** Names of headers with commas between. */
const NAMES = /^[\w!#$%&'*+.^`|~ ,-]+$/;

/** Headers of providers' replies and of our own answers that clients read. */
const READ_BY_CLIENTS = [
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-request-id',
  'request-id',
  'openai-processing-ms',
  ...['limit', 'remaining', 'reset'].flatMap((what) =>
    ['requests', 'tokens'].flatMap((of) => [`x-ratelimit-${what}-${of}`, `anthropic-ratelimit-${of}-${what}`]),
  ),
];

export class CrossOrigin {
  private readonly origins: CrossOrigins;
  private readonly exposedHeaders: OriginHeaders;

  /** `brand`: the brand in the names of our own headers. */
  constructor(origins: CrossOrigins, brand: string) {
    this.origins = origins;
    const own = ['Execution-Id', 'Routed-Model', 'Guardrail', 'Guardrail-Count'].map((name) => `X-${brand}-${name}`);
    this.exposedHeaders = ['access-control-expose-headers', [...own, ...READ_BY_CLIENTS].join(', ')];
  }

  /**
   * The headers of an answer to a request with this Origin; null: the request has none. Where all origins are allowed,
   * no page may use what the browser keeps for its user, such as cookies.
   */
  headersFor(origin: string | null): OriginHeaders {
    if (this.origins === '*')
      return origin === null ? NONE : ['access-control-allow-origin', '*', ...this.exposedHeaders];
    // A cache must keep one answer for each origin, and one for requests without an origin.
    if (origin === null || !this.origins.has(origin)) return VARY;
    const allowed = ['access-control-allow-origin', origin, 'access-control-allow-credentials', 'true'];
    return [...allowed, ...VARY, ...this.exposedHeaders];
  }

  /**
   * Further headers of the answer to a preflight. `asked`: the headers that the page wants to send, as the browser
   * lists them.
   */
  preflightHeadersFor(origin: string | null, asked: string | null): OriginHeaders {
    if (origin === null || (this.origins !== '*' && !this.origins.has(origin))) return NONE;
    const names = asked !== null && asked.length <= NAMES_MAX && NAMES.test(asked) ? asked : null;
    return [
      'access-control-allow-methods',
      METHODS,
      ...(names === null ? NONE : ['access-control-allow-headers', names]),
      'access-control-max-age',
      String(REMEMBERED_SECONDS),
    ];
  }
}
