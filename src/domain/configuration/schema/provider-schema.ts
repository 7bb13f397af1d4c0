// The shape of a provider, in the configuration file and in requests, and how it becomes plain data.

import { z } from 'zod';
import { DAY_MS } from '../../../platform/durations.ts';
import { NO_TOKEN, type ProviderAuth, type ProviderTimeouts } from '../../models/provider.ts';
import type { ConfiguredProvider, ProviderChange } from '../configuration.ts';
import { expandPreset } from '../expand-preset.ts';
import { basedOn } from './catalog-schema.ts';
import { CONFIGURED_MAX, entriesAtMost } from './entries-at-most.ts';
import { slugSchema as slug } from './name-schemas.ts';
import { keyHeaderSchema, type RequestFields, requestFields, requestProblems } from './request-settings.ts';
import { givenToken, SECRET_MEMBER } from './token-schema.ts';

/** An API key is sent as part of a header. */
const headerValue = z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces');

/** Ends of the addresses that providers' documents show for requests, and that people paste. */
const REQUEST_PATH = /\/(?:chat\/completions|v1\/(?:messages|responses|embeddings|images\/generations))$/;

/** Origin and optional path; the dialects' paths are appended, so it ends without a slash. */
const baseUrl = z.string().transform((given, context): string => {
  const text = given.trim().replace(/[/?#]+$/, '');
  const { protocol, username, password, search, hash } = new URL(URL.canParse(text) ? text : 'none:');
  const [path] = REQUEST_PATH.exec(text) ?? [];
  if (/^https?:$/.test(protocol) && username + password + search + hash === '' && path === undefined) return text;
  const message =
    path === undefined
      ? 'must be an http:// or https:// address without query, fragment or credentials'
      : `must be the address before the paths of requests: leave out ${path.replace(/^\/v1/, '')}`;
  context.issues.push({ code: 'custom', message, input: given });
  return z.NEVER;
});

const milliseconds = z
  .int('must be a whole number of milliseconds')
  .min(1, 'must be at least 1')
  .max(DAY_MS, 'must be at most a day')
  .optional();

const timeouts = z
  .strictObject({
    connect_ms: milliseconds,
    first_byte_ms: milliseconds,
    idle_ms: milliseconds,
    total_ms: milliseconds,
  })
  .transform(
    (found): ProviderTimeouts => ({
      ...(found.connect_ms === undefined ? {} : { connectMs: found.connect_ms }),
      ...(found.first_byte_ms === undefined ? {} : { firstByteMs: found.first_byte_ms }),
      ...(found.idle_ms === undefined ? {} : { idleMs: found.idle_ms }),
      ...(found.total_ms === undefined ? {} : { totalMs: found.total_ms }),
    }),
  );

/** `header`: the name of the header that is the key itself. */
const auth = z.union(
  [
    z.enum(['bearer', 'x-api-key', 'none']),
    z.strictObject({ header: keyHeaderSchema }).transform(({ header }): ProviderAuth => header),
  ],
  'must be bearer, x-api-key, none, or { header: NAME }',
);

/** The fields that a preset can set: everything but the key. */
const presettable = {
  base_url: baseUrl.optional(),
  auth: auth.optional(),
  on_disconnect: z.enum(['cancel', 'drain']).optional(),
  stored_objects: z.literal('shared', 'must be shared').optional(),
  timeouts: timeouts.optional(),
  ...requestFields,
};
const presetRules = z.strictObject(presettable);

const providerFields = {
  ...presettable,
  with: entriesAtMost(CONFIGURED_MAX, z.record(z.string(), z.string())).optional(),
  api_key: headerValue.optional(),
  token: givenToken.optional(),
};
const providerRules = z.strictObject(providerFields);
type ProviderFields = z.output<typeof providerRules>;

type WrittenOut = z.output<typeof presetRules> & { readonly base_url: string };

interface FieldProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/** The provider with its preset expanded, or a mistake. The provider's own fields override those of its preset. */
function writeOut(found: ProviderFields): WrittenOut | FieldProblem {
  const { preset: name, with: values, api_key: _, token, ...said } = found;
  // A token is sent as a bearer token, whatever header a preset has for keys.
  const own = token === undefined ? said : { ...said, auth: said.auth ?? 'bearer', token: token.settings };
  if (name === undefined) {
    if (values !== undefined) return { path: ['with'], message: 'is for a preset, and there is none' };
    return own.base_url === undefined
      ? { path: ['base_url'], message: 'is missing, and there is no preset' }
      : { ...own, base_url: own.base_url };
  }
  const expanded = expandPreset(name, values ?? {});
  if (!expanded.ok) return { path: [expanded.at], message: expanded.message };
  const preset = presetRules.parse(expanded.provider);
  return {
    ...preset,
    ...own,
    preset: name,
    base_url: own.base_url ?? preset.base_url ?? '',
    headers: { ...preset.headers, ...own.headers },
    query: { ...withoutNames(preset.query ?? {}, Object.keys(own.query ?? {})), ...own.query },
    apis: { ...preset.apis, ...own.apis },
  };
}

/** Names of query parameters are compared without regard to case. */
function withoutNames(query: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  const replaced = new Set(names.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(query).filter(([name]) => !replaced.has(name.toLowerCase())));
}

function isProblem(found: WrittenOut | FieldProblem): found is FieldProblem {
  return 'message' in found;
}

type MayBeNeeded = 'needs a key' | 'may keep its key';

function problemsOf(found: ProviderFields, keyIs: MayBeNeeded): readonly FieldProblem[] {
  const provider = writeOut(found);
  if (isProblem(provider)) return [provider];
  const isKeyless = provider.auth === 'none';
  const { api_key: key, token } = found;
  // A token with mistakes of its own has not been transformed, and they are reported already.
  if (token !== undefined && !('settings' in token)) return [];
  if (token !== undefined) return [...tokenProblems(token, { isKeyless, key, keyIs }), ...requestProblems(provider)];
  return [
    ...(isKeyless && key !== undefined ? [{ path: ['api_key'], message: 'is not sent with auth: none' }] : []),
    ...(keyIs === 'needs a key' && !isKeyless && key === undefined
      ? [{ path: ['api_key'], message: 'is missing' }]
      : []),
    ...requestProblems(provider),
  ];
}

function tokenProblems(
  { settings: { kind }, secret }: NonNullable<ProviderFields['token']>,
  { isKeyless, key, keyIs }: { isKeyless: boolean; key: string | undefined; keyIs: MayBeNeeded },
): readonly FieldProblem[] {
  if (isKeyless) return [{ path: ['token'], message: 'is not sent with auth: none' }];
  if (key !== undefined) return [{ path: ['api_key'], message: 'is not sent beside a token' }];
  const isMissing = keyIs === 'needs a key' && secret === null;
  return isMissing ? [{ path: ['token', SECRET_MEMBER[kind]], message: 'is missing' }] : [];
}

function readProvider(id: string, found: ProviderFields): ProviderChange {
  const provider = writeOut(found) as WrittenOut;
  return {
    id,
    baseUrl: provider.base_url,
    apiKey: found.api_key ?? null,
    ...(found.token === undefined ? {} : { tokenSecret: secretOf(found.token), token: NO_TOKEN }),
    auth: provider.auth ?? 'bearer',
    onDisconnect: provider.on_disconnect ?? 'cancel',
    requests: requestsOf(provider),
    ...(provider.stored_objects === undefined ? {} : { storedObjects: provider.stored_objects }),
    ...(provider.timeouts === undefined ? {} : { timeouts: provider.timeouts }),
  };
}

function secretOf({ secret }: NonNullable<ProviderFields['token']>): string | null {
  return secret === null ? null : JSON.stringify(secret);
}

/** The request settings that the provider has; null: it has none. */
function requestsOf(provider: WrittenOut): RequestFields | null {
  const names = Object.keys(requestFields) as (keyof RequestFields)[];
  const said = names.flatMap((name) => (isSaid(provider[name]) ? [[name, provider[name]] as const] : []));
  return said.length === 0 ? null : (Object.fromEntries(said) as RequestFields);
}

function isSaid(value: string | number | object | undefined): boolean {
  return value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0);
}

/** A provider in the configuration file, where the key is required. */
export const configuredProvider = z
  .strictObject({ id: slug, ...providerFields })
  .check(({ value, issues }) => {
    for (const { path, message } of problemsOf(value, 'needs a key'))
      issues.push({ code: 'custom', path: [...path], message, input: value });
  })
  .transform((found): ConfiguredProvider => ({ ...readProvider(found.id, found), apiKey: found.api_key ?? '' }));

/** A provider in a request; its id is in the request's path. Without `api_key` the stored key stays. */
export const requestedProvider = z
  .strictObject({ ...providerFields, version: basedOn })
  .check(({ value, issues }) => {
    const isReference = /^(\$\{|os\.environ\/)/.test(value.api_key ?? '');
    const problems = isReference
      ? [{ path: ['api_key'], message: 'must be the key itself, not the name of a variable' }]
      : problemsOf(value, 'may keep its key');
    for (const { path, message } of problems) issues.push({ code: 'custom', path: [...path], message, input: value });
  })
  .transform(({ version, ...found }) => ({
    version: version ?? null,
    provider: (id: string) => readProvider(id, found),
  }));
