// Finds the shape that a call is for, by its host or by `/as/NAME` before its path, and the usual call that it stands
// for; adapts the API to that shape.

import type { IncomingMessage } from 'node:http';
import type { Api, CallRequest } from '../apis/api.ts';
import { isObject, type Json } from '../json-fields.ts';
import type { ProviderShape } from './shape.ts';
import { SHAPES } from './shapes.ts';

export interface AddressedCall {
  /** null: the call is for the simulated provider itself. */
  readonly shape: ProviderShape | null;
  /** The usual path that the call stands for, from /v1 on; empty: none. */
  readonly path: string;
  /** The model that the path names. */
  readonly model: string | null;
}

const AS = /^\/as\/([a-z-]+)(\/.*)$/;

/** `as`: the name of the shape for all calls; null: none. */
export function addressOf(request: IncomingMessage, as: string | null): AddressedCall {
  const [whole = '', search = ''] = (request.url ?? '').split('?', 2);
  const [, named = null, behind = whole] = AS.exec(whole) ?? [];
  const host = (request.headers.host ?? '').replace(/:\d+$/, '');
  const query = new URLSearchParams(search);
  const shapes = shapesFor(as ?? named, host);
  if (shapes.length === 0) return { shape: null, path: whole, model: null };
  for (const shape of shapes) {
    const found = usualPath(shape, behind);
    if (found !== null && hasParameters(shape, query)) return { shape, ...found };
  }
  return { shape: shapes[0] ?? null, path: '', model: null };
}

/** Several shapes may have one host: their paths differ. */
function shapesFor(name: string | null, host: string): readonly ProviderShape[] {
  if (name !== null) return SHAPES[name] === undefined ? [] : [SHAPES[name]];
  return Object.entries(SHAPES)
    .filter(([found, { hosts }]) => (hosts ?? SHAPES[SAME_HOST[found] ?? '']?.hosts)?.test(host) === true)
    .map(([, shape]) => shape);
}

const SAME_HOST: Readonly<Record<string, string>> = { 'azure-classic': 'azure', 'vertex-anthropic': 'vertex' };

function usualPath(
  shape: ProviderShape,
  path: string,
): { readonly path: string; readonly model: string | null } | null {
  for (const [template, usual] of Object.entries(shape.templates ?? {})) {
    const source = template
      .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
      .replaceAll('{any}', '[^/]+')
      .replace('{model}', '([^/:]+)');
    const match = new RegExp(`^${source}$`).exec(path);
    if (match !== null) return { path: usual, model: match[1] === undefined ? null : decodeURIComponent(match[1]) };
  }
  for (const [base, names] of Object.entries(shape.below)) {
    const rest = path.startsWith(`${base}/`) ? path.slice(base.length + 1) : null;
    if (rest !== null && names.some((name) => rest === name || rest.startsWith(`${name}/`)))
      return { path: `/v1/${rest}`, model: null };
  }
  return null;
}

function hasParameters({ query = {} }: ProviderShape, found: URLSearchParams): boolean {
  return Object.entries(query).every(([name, value]) => {
    const [first, ...others] = found.getAll(name);
    return first !== undefined && others.length === 0 && value.test(first);
  });
}

/** The key in the header that this provider requires; null: the header is missing. */
export function keyFor({ auth }: ProviderShape, { headers }: IncomingMessage): string | null {
  if (auth === null) return 'nobody';
  if (auth === 'bearer') return /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? null;
  const key = headers[auth];
  return typeof key === 'string' && key !== '' ? key : null;
}

/** A key `refused-N-...` is refused in the provider's Nth way. */
const REFUSED = /^refused-(\d)-/;

export interface RenderedRefusal {
  readonly status: number;
  readonly body: string;
}

/** null: the key is good. */
export function refusalOf({ refusals }: ProviderShape, key: string | null): RenderedRefusal | null {
  const number = key === null ? '0' : REFUSED.exec(key)?.[1];
  const refusal = number === undefined ? undefined : refusals[Number(number)];
  if (refusal === undefined) return null;
  const body = refusal.body(key ?? '');
  return { status: refusal.status, body: typeof body === 'string' ? body : JSON.stringify(body) };
}

/** Returns the API as a provider of this shape has it. */
export function shapedApi(api: Api, shape: ProviderShape, model: string | null): Api {
  const { error, rewrites = {} } = shape;
  const isOpenai = api.family === 'openai';
  return {
    ...api,
    renderError: (found, requestId) =>
      error === undefined || !isOpenai ? api.renderError(found, requestId) : JSON.stringify(error(found)),
    plan: (request) =>
      api.plan({
        ...asUsual(request, shape, model),
        ...(rewrites[api.name] === undefined ? {} : { rewriteDocument: rewrites[api.name] }),
        ...(shape.streamOpening === undefined ? {} : { streamOpening: shape.streamOpening }),
      }),
  };
}

/** Returns the call as the imitated API would have received it. */
function asUsual(request: CallRequest, shape: ProviderShape, model: string | null): CallRequest {
  const { json, headers } = request;
  if (json === null) return request;
  const version = json.anthropic_version;
  return {
    ...request,
    json: { ...json, ...(json.model === undefined && model !== null ? { model } : {}), ...usageOptions(json, shape) },
    headers:
      shape.versionInBody === true && version === 'vertex-2023-10-16'
        ? { ...headers, 'anthropic-version': '2023-06-01' }
        : headers,
  };
}

function usageOptions(json: Json, shape: ProviderShape): Json {
  if (shape.tellsUsageUnasked !== true) return {};
  const options = isObject(json.stream_options) ? json.stream_options : {};
  return { stream_options: { ...options, include_usage: true } };
}
