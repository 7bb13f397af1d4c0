// The shape of the settings of a provider's requests in a configuration file, and how they become plain data.

import { z } from 'zod';
import { API_NAMES, APIS, type ApiName } from '../../models/apis.ts';
import { type ApiSettings, OUTPUT_LIMITS, type RequestSettings, type TlsSettings } from '../../models/provider.ts';
import { PRESET_NAMES } from '../presets.ts';
import { CONFIGURED_MAX, CONFIGURED_TOO_MANY, entriesAtMost } from './entries-at-most.ts';
import { shownToken } from './token-schema.ts';

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;
/** The HTTP client sets these headers; a second one would frame the request twice or send it elsewhere. */
const FRAMING_HEADERS = [
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const CREDENTIAL_HEADERS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'];

function headerName(excluded: readonly string[], instead: string) {
  return z
    .string()
    .regex(HEADER_NAME, "must be a header's name")
    .transform((name) => name.toLowerCase())
    .refine((name) => !excluded.includes(name), instead);
}

/** The header that carries a key. */
export const keyHeaderSchema = headerName(
  [...FRAMING_HEADERS, 'bearer', 'none'],
  'is a header that the HTTP client writes, or no header',
);
const addedHeader = headerName(
  [...FRAMING_HEADERS, ...CREDENTIAL_HEADERS],
  'is a header that the HTTP client writes, or a credential: that is what api_key and auth are for',
);
const headerText = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,998}[\x21-\x7e])?$/, 'must be visible ASCII characters');
const queryText = z.string().regex(/^[A-Za-z0-9._~-]{1,200}$/, 'must be letters, digits, ".", "_", "~" or "-"');

const PATH = /^\/(?:[A-Za-z0-9._~:@!$&'()*+,;=/-]|%[0-9A-Fa-f]{2}|\{model\}|\{path\})*$/;
const pathTemplate = z
  .string()
  .regex(PATH, 'must begin with / and be the path of an address; {model} and {path} are filled in')
  .refine((path) => !/(^|\/)\.\.?(\/|$)/.test(path), 'must not hold "." or ".." as a step');

const apiSettings = z.strictObject({
  path: pathTemplate.optional(),
  path_stream: pathTemplate.optional(),
  model_in: z.literal('path', 'must be path').optional(),
  instead_of_model: entriesAtMost(
    CONFIGURED_MAX,
    z.record(z.string().regex(/^[A-Za-z0-9_-]{1,100}$/), z.string().max(1_000)),
  ).optional(),
});
type ApiFields = z.output<typeof apiSettings>;

const wording = z
  .strictObject({
    status: z.literal([400, 403]),
    word: z.string().min(3).optional(),
    message: z.string().min(3).optional(),
  })
  .refine(({ word, message }) => (word === undefined) !== (message === undefined), 'needs either word or message');

const filePath = z.string().regex(/^\/[^\0]{1,4000}$/, 'must be the absolute path of a file');
const PROXY = /^(https?|socks5):$/;
/** A provider's configuration is shown, so a proxy's password belongs in HTTPS_PROXY. */
const isProxy = ({ protocol, username, password }: URL): boolean =>
  PROXY.test(protocol) && username === '' && password === '';
const proxyAddress = z
  .string()
  .refine(
    (text) => text === 'none' || (URL.canParse(text) && isProxy(new URL(text))),
    'must be none, or the address of a proxy without credentials: http://, https:// or socks5://',
  );

/** The fields of a provider that change how requests to it are sent. */
export const requestFields = {
  preset: z.enum(PRESET_NAMES).optional(),
  headers: entriesAtMost(CONFIGURED_MAX, z.record(addedHeader, headerText)).optional(),
  query: entriesAtMost(CONFIGURED_MAX, z.record(queryText, queryText)).optional(),
  drop_headers: z
    .array(headerName(FRAMING_HEADERS, 'never goes to a provider'))
    .max(CONFIGURED_MAX, CONFIGURED_TOO_MANY)
    .optional(),
  ignores: z.array(z.enum(OUTPUT_LIMITS)).max(OUTPUT_LIMITS.length, 'must name each field once').optional(),
  apis: entriesAtMost(CONFIGURED_MAX, z.partialRecord(z.enum(API_NAMES), apiSettings)).optional(),
  errors: z.array(wording).max(CONFIGURED_MAX, CONFIGURED_TOO_MANY).optional(),
  verify: z
    .union([z.strictObject({ path: pathTemplate }), z.literal('token')], 'must be { path: ... }, or token')
    .optional(),
  token: shownToken.optional(),
  proxy: proxyAddress.optional(),
  http: z.literal([1, 2], 'must be 1 or 2').optional(),
  tls: z.strictObject({ ca: filePath.optional(), cert: filePath.optional(), key: filePath.optional() }).optional(),
};
const requestRules = z.strictObject(requestFields);

/** The settings of a provider's requests as its configuration writes them. */
export type RequestFields = z.output<typeof requestRules>;

export interface RequestProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/** Contradictions in the settings of requests. */
export function requestProblems({ apis = {}, tls }: RequestFields): readonly RequestProblem[] {
  const ofTls =
    tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined)
      ? [{ path: ['tls'], message: 'needs cert and key together' }]
      : [];
  const ofApis = Object.entries(apis).flatMap(([name, found]) => {
    const api = name as ApiName;
    const problem = apiProblem(api, found as ApiFields);
    return problem === null ? [] : [{ path: ['apis', api, problem.field], message: problem.message }];
  });
  return [...ofTls, ...ofApis];
}

function apiProblem(
  api: ApiName,
  { path, path_stream: pathStream, model_in: modelIn }: ApiFields,
): { readonly field: string; readonly message: string } | null {
  if (modelIn === 'path' && path?.includes('{model}') !== true)
    return { field: 'path', message: 'must hold {model}, since model_in says that the model is in it' };
  if (pathStream !== undefined && path === undefined) return { field: 'path', message: 'is needed beside path_stream' };
  if (path !== undefined && APIS[api].hasSeveralPaths && !path.includes('{path}'))
    return { field: 'path', message: `must hold {path}, since ${api} has more than one` };
  return null;
}

export function readRequestSettings(found: RequestFields): RequestSettings {
  const apis = Object.entries(found.apis ?? {}).map(([api, fields]) => [api, readApi(fields as ApiFields)] as const);
  return {
    preset: found.preset ?? null,
    headers: found.headers ?? {},
    query: found.query ?? {},
    dropHeaders: found.drop_headers ?? [],
    ...(found.ignores === undefined ? {} : { ignores: found.ignores }),
    apis: Object.fromEntries(apis),
    verifyPath: typeof found.verify === 'object' ? found.verify.path : null,
    isVerifiedByToken: found.verify === 'token',
    ...(found.proxy === undefined ? {} : { proxy: found.proxy }),
    http: found.http ?? 1,
    ...(found.tls === undefined ? {} : { tls: tlsOf(found.tls) }),
    errors: (found.errors ?? []).map(({ status, word, message }) =>
      word === undefined ? { status, in: 'message', text: message ?? '' } : { status, in: 'word', text: word },
    ),
  };
}

function tlsOf({ ca, cert, key }: NonNullable<RequestFields['tls']>): TlsSettings {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

function readApi({
  path,
  path_stream: pathStream,
  model_in: modelIn,
  instead_of_model: instead,
}: ApiFields): ApiSettings {
  const insteadOfModel = instead ?? (modelIn === 'path' ? {} : undefined);
  return {
    ...(path === undefined ? {} : { path }),
    ...(pathStream === undefined ? {} : { pathStream }),
    ...(insteadOfModel === undefined ? {} : { insteadOfModel }),
  };
}
