// The OpenAPI 3.1 document of the whole HTTP surface, from the route table, the table of refusals and the schemas that
// the handlers themselves use.

import { z } from 'zod';
import type { DescribedRoute, Plane } from './described-route.ts';
import { DocumentSchemas, type Json } from './document-schemas.ts';
import { type DocumentResponses, ResponseWriter } from './responses.ts';

export interface OpenapiDocument {
  readonly openapi: '3.1.0';
  readonly info: Json;
  readonly servers: readonly Json[];
  readonly security: readonly Json[];
  readonly tags: readonly Json[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: DocumentResponses & { readonly schemas: Json; readonly securitySchemes: Json };
}

const PLANES: Readonly<Record<Plane, string>> = {
  data: 'Generation, and the responses that it saved. What a provider answers is relayed byte for byte.',
  control: 'What exists and what happened.',
  process: 'The service itself; no credential is needed.',
};

export function buildOpenapiDocument(
  routes: readonly DescribedRoute[],
  about: { readonly version: string; readonly publicUrl: string },
): OpenapiDocument {
  const schemas = new DocumentSchemas();
  const responses = new ResponseWriter(schemas);
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describeRoute(route, schemas, responses);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version: about.version,
      description: 'An inference gateway: generation, usage, identity and catalog.',
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: about.publicUrl }],
    security: [{ bearer: [] }],
    tags: Object.entries(PLANES).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: schemas.components(),
      ...responses.components(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An inference key or an access token.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-tollgate',
          description: 'A session of the console, with the header X-Tollgate-Console and from its own origin.',
        },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'A key in the header that clients of the Messages dialect use.',
        },
      },
    },
  };
}

function describeRoute(route: DescribedRoute, schemas: DocumentSchemas, responses: ResponseWriter): Json {
  const { id, summary, details, headers = {}, query } = route.description;
  return {
    operationId: id,
    summary,
    ...(details === undefined ? {} : { description: details }),
    tags: [route.plane],
    ...securityOf(route),
    parameters: [
      ...pathParameters(route.path),
      ...parametersIn('query', query, schemas),
      ...parametersIn('header', z.object(headers), schemas),
    ],
    ...bodyOf(route, schemas),
    responses: responses.of(route),
    'x-permission': route.permission,
    'x-scope': route.scope,
  };
}

function securityOf(route: DescribedRoute): Json {
  if (route.plane === 'process') return { security: [] };
  if (route.takesSession === true) return { security: [{ bearer: [] }, { session: [] }] };
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

function parametersIn(place: 'query' | 'header', fields: z.ZodObject | null, schemas: DocumentSchemas): Json[] {
  if (fields === null) return [];
  const { properties = {}, required = [] } = schemas.of(fields, 'input') as {
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: place,
    ...(description === undefined ? {} : { description }),
    required: required.includes(name),
    schema,
  }));
}

function bodyOf({ description: { body, form } }: DescribedRoute, schemas: DocumentSchemas): Json {
  if (body === null && form === undefined) return {};
  const content = {
    ...(form === undefined ? {} : { 'multipart/form-data': { schema: schemas.of(form, 'input') } }),
    ...(body === null ? {} : { 'application/json': { schema: schemas.of(body, 'input') } }),
  };
  return { requestBody: { required: true, content } };
}
