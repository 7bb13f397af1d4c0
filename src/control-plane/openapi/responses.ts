// The answers of a route for the OpenAPI document: its success, and for each status the refusals that it can have. A
// refusal that several routes share is a component that they refer to.

import { z } from 'zod';
import type { RefusalKind } from '../../domain/refusals/refusal.ts';
import { REFUSAL_RULES } from '../../domain/refusals/refusal-rules.ts';
import { statusLine } from '../../domain/refusals/status-line.ts';
import type { HeaderSchemas } from '../operation.ts';
import type { DescribedRoute } from './described-route.ts';
import type { DocumentSchemas, Json } from './document-schemas.ts';
import { codeOf, errorSchemasOf, providerError } from './error-schemas.ts';
import { refusalsOf } from './refusals-of-route.ts';

export interface DocumentResponses {
  readonly responses: Json;
  readonly headers: Json;
}

/** Headers of every refusal. */
const REFUSAL_HEADERS: HeaderSchemas = {
  'X-Should-Retry': z.enum(['true', 'false']).meta({ description: 'Whether a client should try again by itself.' }),
  'X-Request-Id': z.uuid().meta({ description: 'The id of the request, as in the body.' }),
  'Request-Id': z.uuid().meta({ description: 'The same id, for clients that read this header.' }),
};
/** The header of an answer that no cache may keep. */
const NEVER_CACHED: HeaderSchemas = { 'Cache-Control': z.literal('no-store') };
const SOME_NUMBER = z.string().regex(/^\d+$/).optional();
const RANGE_HEADER: HeaderSchemas = {
  'Content-Range': z.string().meta({ description: 'Which part of the file this is, and the length of the whole.' }),
};
/** Headers that belong to a status (RFC 9110). */
const HEADERS_OF_STATUS: Readonly<Record<number, HeaderSchemas>> = {
  401: { 'WWW-Authenticate': z.literal('Bearer') },
  416: RANGE_HEADER,
  405: { Allow: z.string().meta({ description: 'The methods of the path.' }) },
};
/** Headers of refusals after which the same request can succeed later. */
const LATER_HEADERS: HeaderSchemas = {
  'Retry-After': SOME_NUMBER.meta({ description: 'When the request can succeed, in whole seconds.' }),
  'Retry-After-Ms': SOME_NUMBER.meta({ description: 'When the request can succeed, in milliseconds.' }),
};

export class ResponseWriter {
  private readonly schemas: DocumentSchemas;
  private readonly shared = new Map<string, Json>();
  private readonly headers = new Map<string, Json>();

  constructor(schemas: DocumentSchemas) {
    this.schemas = schemas;
  }

  of(route: DescribedRoute): Json {
    const responses: Record<string, Json> = {};
    const { status, otherAnswers = {} } = route.description;
    if (status !== null) responses[status] = this.success(route);
    if (route.description.isPage === true) Object.assign(responses, this.otherPages(route));
    if (route.description.isBytes === true) Object.assign(responses, this.partsOfBytes(route));
    for (const [other, schema] of Object.entries(otherAnswers))
      responses[other] = {
        description: phraseOf(Number(other)),
        ...this.headersOf(cachingOf(route)),
        content: this.json([schema]),
      };
    for (const [refused, kinds] of refusalsOf(route)) responses[refused] ??= this.refusal(route, refused, kinds);
    if (isRelayed(route))
      responses['default'] = { description: 'The provider’s own error.', content: this.json([providerError]) };
    else if (status === null) responses['default'] = { description: 'Every request is refused.' };
    return responses;
  }

  /** The components that the routes refer to. */
  components(): DocumentResponses {
    return { responses: Object.fromEntries(this.shared), headers: Object.fromEntries(this.headers) };
  }

  private success(route: DescribedRoute): Json {
    const { answer, events, isCsv, isBytes, isPage, answerHeaders = {} } = route.description;
    const content = {
      ...(answer === null ? {} : this.json([answer])),
      ...(events === undefined ? {} : { 'text/event-stream': { schema: this.schemas.of(events, 'output') } }),
      ...(isCsv === true ? { 'text/csv': { schema: { type: 'string' } } } : {}),
      ...(isBytes === true ? BYTES : {}),
      ...(isPage === true ? PAGE : {}),
    };
    return { description: 'Success.', ...this.headersOf({ ...cachingOf(route), ...answerHeaders }), content };
  }

  private partsOfBytes({ description: { answerHeaders = {} } }: DescribedRoute): Json {
    const part = this.headersOf({ ...answerHeaders, ...RANGE_HEADER });
    return {
      206: { description: 'The part that a Range header asks for.', ...part, content: BYTES },
      304: {
        description: 'The version that If-None-Match names is the present one.',
        ...this.headersOf(answerHeaders),
      },
    };
  }

  private otherPages({ description: { answerHeaders = {} } }: DescribedRoute): Json {
    const headers = this.headersOf(answerHeaders);
    const page = { 'text/html': { schema: { type: 'string' } } };
    return {
      304: { description: 'The version that If-None-Match names is the present one.', ...headers },
      503: { description: 'The console is not built; the page says how.', ...headers, content: page },
    };
  }

  /** The refusal as a component; it is described at the route where the component of its name is another one. */
  private refusal(route: DescribedRoute, status: number, kinds: readonly RefusalKind[]): Json {
    const relayed = isRelayed(route);
    const bodies = errorSchemasOf(route, kinds);
    const codes = [...new Set(kinds.map((kind) => `\`${codeOf(kind)}\``))].join(', ');
    const response = {
      description: relayed ? `${phraseOf(status)} ${codes}, or the provider’s own error.` : phraseOf(status),
      ...this.headersOf({
        ...REFUSAL_HEADERS,
        ...cachingOf(route),
        ...HEADERS_OF_STATUS[status],
        ...(kinds.some(isRetriedLater) ? LATER_HEADERS : {}),
        ...(relayed ? route.description.answerHeaders : {}),
      }),
      content: this.json(relayed ? [...bodies, providerError] : bodies),
    };
    const name = `${route.envelope}.${status}`;
    const present = this.shared.get(name) ?? response;
    if (JSON.stringify(present) !== JSON.stringify(response)) return response;
    this.shared.set(name, response);
    return { $ref: `#/components/responses/${name}` };
  }

  private json(schemas: readonly z.ZodType[]): Json {
    const [first, ...others] = schemas.map((schema) => this.schemas.of(schema, 'output'));
    return { 'application/json': { schema: others.length === 0 ? first : { anyOf: [first, ...others] } } };
  }

  /** The headers as components; a header is described at its answer where the component of its name is another one. */
  private headersOf(headers: HeaderSchemas): Json {
    const own: Record<string, Json> = {};
    for (const [name, described] of Object.entries(headers)) {
      const { description = name, ...schema } = this.schemas.of(described, 'output');
      const header = { description, required: !described.safeParse(undefined).success, schema };
      const present: Json = this.headers.get(name) ?? header;
      this.headers.set(name, present);
      const isShared = JSON.stringify(present) === JSON.stringify(header);
      own[name] = isShared ? { $ref: `#/components/headers/${name}` } : header;
    }
    return Object.keys(own).length === 0 ? {} : { headers: own };
  }
}

/** The bytes of a file, whatever its type is. */
const BYTES = { '*/*': { schema: { type: 'string', format: 'binary' } } };

const PAGE = Object.fromEntries(
  ['text/html', 'text/javascript', 'text/css', 'image/svg+xml'].map((type) => [type, { schema: { type: 'string' } }]),
);

/** An answer that describes this header itself has its own description. */
function cachingOf({ isNeverCached }: DescribedRoute): HeaderSchemas {
  return isNeverCached === true ? NEVER_CACHED : {};
}

function isRelayed({ plane }: DescribedRoute): boolean {
  return plane === 'data';
}

function isRetriedLater(kind: RefusalKind): boolean {
  const { status, retryable } = REFUSAL_RULES[kind];
  return retryable || status === TOO_MANY_REQUESTS;
}

/** The status of a used-up budget: a client should not retry by itself, but is told when the budget begins anew. */
const TOO_MANY_REQUESTS = 429;

function phraseOf(status: number): string {
  return `${statusLine(status).slice(4)}.`;
}
