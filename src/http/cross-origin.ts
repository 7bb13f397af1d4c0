// Which pages of other origins may call the gateway from a browser (CORS): what their answers say beside the rest, and
// the answer to the question that a browser asks before it sends what a form could not.

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

  /** `brand`: of our own headers. */
  constructor(origins: CrossOrigins, brand: string) {
    this.origins = origins;
    const own = ['Execution-Id', 'Routed-Model', 'Guardrail', 'Guardrail-Count'].map((name) => `X-${brand}-${name}`);
    this.exposedHeaders = ['access-control-expose-headers', [...own, ...READ_BY_CLIENTS].join(', ')];
  }

  /**
   * For the answer to a request with this Origin; null: it has none. Where all origins may ask, none of their pages is
   * trusted with what the browser knows of its user, such as cookies.
   */
  headersFor(origin: string | null): OriginHeaders {
    if (this.origins === '*')
      return origin === null ? NONE : ['access-control-allow-origin', '*', ...this.exposedHeaders];
    // Caches keep an answer for each origin, and for requests without one.
    if (origin === null || !this.origins.has(origin)) return VARY;
    const allowed = ['access-control-allow-origin', origin, 'access-control-allow-credentials', 'true'];
    return [...allowed, ...VARY, ...this.exposedHeaders];
  }

  /**
   * For the answer to a preflight, beside those. `asked`: the headers that the page wants to send, as the browser lists
   * them.
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
