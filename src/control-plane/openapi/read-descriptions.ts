// Descriptions of reading routes whose handlers write their JSON text themselves: generation records (exact numbers)
// and the catalog (rendered once for each change).

import { z } from 'zod';
import { CLIENT_REQUEST_ID_LENGTH_MAX } from '../../records/field-types.ts';
import { publicHealth } from '../catalog/health-fields.ts';
import { pageHeaderNames } from '../console/built-console.ts';
import type { OperationDescription } from '../operation.ts';
import { model, modelList } from './model-schemas.ts';
import { generationMembers } from './record-schemas.ts';

const generation = z
  .object(generationMembers())
  .meta({ id: 'Generation', description: 'Money is an exact JSON number; what is missing is not known.' });

function reading(id: string, summary: string, query: z.ZodObject | null, answer: z.ZodType): OperationDescription {
  return { id, summary, query, body: null, answer, status: 200 };
}

export const GET_GENERATION = reading(
  'getGeneration',
  'Shows one execution of the caller’s organization and payer.',
  z.object({
    id: z.uuid(),
    wait: z.int().min(0).max(30).optional().meta({ description: 'Seconds to wait for the charge to be final.' }),
  }),
  z.object({ data: generation }),
);
export const LIST_GENERATIONS = reading(
  'listGenerations',
  'Lists the executions that carried a correlation value.',
  z.object({ client_request_id: z.string().max(CLIENT_REQUEST_ID_LENGTH_MAX) }),
  z.object({ data: z.array(generation) }),
);
/**
 * What clients send to model lists: Anthropic's SDKs and Claude Code ask for pages (`limit`, `after_id`, `before_id`)
 * and name their beta API (`beta`), Codex names its version. The list is one page, so none of them changes it.
 */
const MODEL_LIST_QUERY = z.object({
  limit: z.string().optional(),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
  beta: z.string().optional(),
  client_version: z.string().optional(),
});
export const LIST_MODELS: OperationDescription = {
  ...reading(
    'listModels',
    'Lists the models that can be called, on one page whatever the parameters say.',
    MODEL_LIST_QUERY,
    modelList,
  ),
  headers: {
    'X-Provider-Data': z
      .string()
      .optional()
      .meta({ description: '`true`: an entry for each provider that serves a model, instead of one for each name.' }),
  },
};
export const GET_MODEL = reading(
  'getModel',
  'Shows a model that can be called, by its id or alias.',
  MODEL_LIST_QUERY.pick({ beta: true, client_version: true }),
  model,
);
export const LIST_MODEL_PROVIDERS = reading(
  'listModelProviders',
  'Lists the providers in the catalog, what each serves and how it is doing.',
  null,
  z.object({
    object: z.literal('list'),
    data: z.array(z.object({ id: z.string(), models: z.array(z.string()), health: publicHealth })),
  }),
);
export const GET_HEALTH = reading(
  'getHealth',
  'Says that this process runs.',
  null,
  z.object({ status: z.literal('ok') }),
);
const readiness = z
  .object({ status: z.enum(['ready', 'not ready']), not_ready: z.array(z.string()) })
  .meta({ id: 'Readiness', description: '`not_ready` names what is missing.' });

export const GET_READINESS: OperationDescription = {
  ...reading('getReadiness', 'Says whether this process can serve.', null, readiness),
  otherAnswers: { 503: readiness },
};
const PAGE_HEADERS = Object.fromEntries(
  [...pageHeaderNames(), 'ETag', 'Cache-Control', 'Vary', 'Content-Encoding'].map((name) => [
    name,
    z.string().optional(),
  ]),
);

function page(id: string, summary: string): OperationDescription {
  return { id, summary, query: null, body: null, answer: null, answerHeaders: PAGE_HEADERS, isPage: true, status: 200 };
}

export const GET_CONSOLE = page('getConsole', 'The console: a page for people.');
export const GET_CONSOLE_FILE = page(
  'getConsoleFile',
  'The console’s script and stylesheet; every other path below it is the page at another of its screens.',
);
export const GET_OPENAPI = reading('getOpenapi', 'This document.', null, z.looseObject({ openapi: z.string() }));
