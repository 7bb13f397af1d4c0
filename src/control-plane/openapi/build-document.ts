// The OpenAPI 3.1 document of the whole HTTP surface, from the route table and the schemas that the handlers themselves
// use.

import { z } from 'zod';
import type { DescribedRoute } from './described-route.ts';
import { errorSchemaOf } from './error-schemas.ts';

type Json = Readonly<Record<string, unknown>>;
type Schemas = Map<string, Json>;

export interface OpenapiDocument {
  readonly openapi: '3.1.0';
  readonly info: Json;
  readonly servers: readonly Json[];
  readonly security: readonly Json[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Json; readonly securitySchemes: Json };
}

export function buildOpenapiDocument(
  routes: readonly DescribedRoute[],
  about: { readonly version: string; readonly publicUrl: string },
): OpenapiDocument {
  const schemas: Schemas = new Map();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describeRoute(route, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version: about.version,
      description: 'An inference gateway: generation, usage, identity and catalog.',
    },
    servers: [{ url: about.publicUrl }],
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An inference key or an access token.' },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'As clients of the Messages dialect present a key.',
        },
      },
    },
  };
}

function describeRoute(route: DescribedRoute, schemas: Schemas): Json {
  const { id, summary, query, body, form, answer, status } = route.description;
  const isGeneration = route.plane === 'data';
  const responses: Record<string, Json> = {
    [status]: { description: 'Success.', ...(answer === null ? {} : jsonContent(schemaOf(answer, 'output', schemas))) },
    default: {
      description: 'Refused.',
      ...jsonContent(schemaOf(errorSchemaOf(route.envelope, isGeneration), 'output', schemas)),
    },
  };
  return {
    operationId: id,
    summary,
    tags: [route.plane],
    ...securityOf(route),
    parameters: [...pathParameters(route.path), ...queryParameters(query, schemas)],
    ...(body === null
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              [form ? 'multipart/form-data' : 'application/json']: { schema: schemaOf(body, 'input', schemas) },
            },
          },
        }),
    responses,
    'x-permission': route.permission,
    'x-scope': route.scope,
  };
}

function securityOf(route: DescribedRoute): Json {
  if (route.plane === 'process') return { security: [] };
  return route.envelope === 'messages' ? { security: [{ bearer: [] }, { apiKey: [] }] } : {};
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters(query: z.ZodObject | null, schemas: Schemas): Json[] {
  if (query === null) return [];
  const { properties = {}, required = [] } = schemaOf(query, 'input', schemas) as {
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
}

function jsonContent(schema: Json): Json {
  return { content: { 'application/json': { schema } } };
}

/** Named schemas become components of the document, and other schemas refer to them. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Schemas): Json {
  const {
    $schema: _,
    $defs = {},
    ...rest
  } = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Record<string, unknown>;
  for (const [name, definition] of Object.entries($defs as Record<string, Json>)) {
    const { id: __, ...named } = definition;
    schemas.set(name, pointAtComponents(named) as Json);
  }
  const { id, ...own } = pointAtComponents(rest) as Record<string, unknown>;
  if (typeof id !== 'string') return own;
  schemas.set(id, own);
  return { $ref: `#/components/schemas/${id}` };
}

function pointAtComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointAtComponents);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string'
        ? inner.replace('#/$defs/', '#/components/schemas/')
        : pointAtComponents(inner),
    ]),
  );
}
