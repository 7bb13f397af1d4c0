// The address of a request to a provider, and which of the client's headers go with it. The path is the usual path of
// the API behind the base URL, or the one in the provider's configuration.

import type { ApiName } from '../domain/models/apis.ts';
import type { ApiSettings, Provider } from '../domain/models/provider.ts';
import { type ForwardedHeaders, isForwarded } from './header-policy.ts';
import { HeaderLines } from './http1/request-head.ts';

/** An API, or the request that verifies the provider's key. */
export type TargetName = ApiName | 'verify';

export interface RequestTarget {
  readonly api: TargetName;
  /** The API's usual path, from /v1 on. */
  readonly path: string;
  /** The client's query string, in visible ASCII and without its question mark; empty: none. */
  readonly query: string;
  /** The provider's name for the model; empty where a request names none. */
  readonly providerModel: string;
  readonly streamed: boolean;
}

/**
 * Query parameters in which some providers accept a key or an account; a few of them prefer it to the one in the
 * header. The client's are never forwarded: they could choose another account than the record names, or show the
 * client's Tollgate key to a provider. Each of Google's may begin with a dollar sign
 * (https://cloud.google.com/apis/docs/system-parameters).
 */
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  'key',
  'api_key',
  'api-key',
  'apikey',
  'x-api-key',
  'x-goog-api-key',
  'authorization',
  'access_token',
  'oauth_token',
  'auth_token',
  'token',
  'subscription-key',
  'ocp-apim-subscription-key',
  'userproject',
]);
const TEMPLATE = /\{(model|path)\}/g;

/** What requests to one provider have in common. */
export class ProviderAddress {
  readonly origin: string;
  /** The path before an API's usual path, which begins with /v1. */
  private readonly usualPrefix: string;
  /** The APIs with a configured path, which begins at the origin here. */
  private readonly apis: Readonly<Partial<Record<TargetName, ApiSettings>>> | null;
  /**
   * The configured parameters of every request: their names in lower case, and their texts `name=value`; null: none.
   */
  private readonly query: { readonly names: ReadonlySet<string>; readonly texts: readonly string[] } | null;
  /** Headers on the allowlist that this provider does not get; null: none. */
  private readonly withheld: ReadonlySet<string> | null;

  constructor({ baseUrl, auth, requests }: Pick<Provider, 'baseUrl' | 'auth' | 'requests'>) {
    const url = new URL(baseUrl);
    this.origin = url.origin;
    const basePath = url.pathname.replace(/\/+$/, '');
    // Clients of these APIs write base URLs that end in /v1; that /v1 is not doubled.
    this.usualPrefix = basePath.replace(/\/v1$/, '');
    const verify =
      requests === undefined || requests.verifyPath === null ? {} : { verify: { path: requests.verifyPath } };
    const apis = Object.entries({ ...requests?.apis, ...verify });
    const before = withoutOwnPrefix(basePath, Object.values(requests?.apis ?? {}));
    const whole = (path: string): string => (ownPrefix(path) === null ? basePath : before) + path;
    this.apis =
      apis.length === 0 ? null : Object.fromEntries(apis.map(([api, settings]) => [api, withPaths(settings, whole)]));
    const query = Object.entries(requests?.query ?? {});
    const texts = query.map(([name, value]) => `${name}=${value}`);
    this.query = query.length === 0 ? null : { names: new Set(query.map(([name]) => name.toLowerCase())), texts };
    const replaced = [auth, ...Object.keys(requests?.headers ?? {}), ...(requests?.dropHeaders ?? [])];
    const withheld = replaced.filter(isForwarded);
    this.withheld = withheld.length === 0 ? null : new Set(withheld);
  }

  /** The path on the wire, query included. */
  pathOf(target: RequestTarget): string {
    const own = this.apis === null ? undefined : this.apis[target.api];
    const path = own?.path === undefined ? this.usualPrefix + target.path : fill(own, target);
    if (target.query === '' && this.query === null) return path;
    const parameters = [...clientParameters(target.query, this.query?.names), ...(this.query?.texts ?? [])];
    return parameters.length === 0 ? path : `${path}?${parameters.join('&')}`;
  }

  /** The client's headers, without those that this provider does not get. */
  headersOf(headers: ForwardedHeaders): ForwardedHeaders {
    const { withheld } = this;
    if (withheld === null) return headers;
    const all = headers instanceof HeaderLines ? headers.headers : headers;
    return all.filter((_, index) => !withheld.has((all[index - (index % 2)] as string).toLowerCase()));
  }
}

/** The beginning of an API's configured path up to the version, such as `/openai/v1`; null: the path has no version. */
function ownPrefix(path: string): string | null {
  const [literal = ''] = path.split('{', 1);
  return /^(.*\/v1)(?:\/|$)/.exec(literal)?.[1] ?? null;
}

/**
 * The base path without an ending that the configured paths have already: people paste the address of one API, or an
 * address with a version.
 */
function withoutOwnPrefix(basePath: string, apis: readonly ApiSettings[]): string {
  const prefixes = apis.flatMap(({ path = '' }) => ownPrefix(path) ?? []);
  const endings = [...prefixes, ...prefixes.map((prefix) => prefix.replace(/\/v1$/, ''))];
  const pasted = endings.find((ending) => ending !== '' && ending !== '/v1' && basePath.endsWith(ending)) ?? '';
  return basePath.slice(0, basePath.length - pasted.length).replace(/\/v1$/, '');
}

function withPaths(settings: ApiSettings, whole: (path: string) => string): ApiSettings {
  const { path, pathStream } = settings;
  return {
    ...settings,
    ...(path === undefined ? {} : { path: whole(path) }),
    ...(pathStream === undefined ? {} : { pathStream: whole(pathStream) }),
  };
}

/** A model's name is escaped, since it may contain a slash or a question mark. */
function fill({ path = '', pathStream }: ApiSettings, { path: usual, providerModel, streamed }: RequestTarget): string {
  return (streamed ? (pathStream ?? path) : path).replace(TEMPLATE, (_, name: string) =>
    name === 'model' ? encodeURIComponent(providerModel) : usual.slice('/v1/'.length),
  );
}

/**
 * The client's parameters, without those that the provider's configuration sets and those that carry a credential.
 * Names are compared in lower case, because many providers ignore case.
 */
function clientParameters(query: string, replaced: ReadonlySet<string> | undefined): readonly string[] {
  // Nothing after a `#` goes along: parameters added behind it would be part of a fragment, which a provider does not
  // read.
  const [sent = ''] = query.split('#', 1);
  if (sent === '') return [];
  return sent.split('&').filter((parameter) => {
    const name = nameOf(parameter);
    return replaced?.has(name) !== true && !CREDENTIAL_PARAMETERS.has(name.replace(/^\$/, ''));
  });
}

/** The name of a parameter, decoded and in lower case. */
function nameOf(parameter: string): string {
  const name = parameter.split('=', 1)[0] as string;
  try {
    return decodeURIComponent(name.replaceAll('+', ' ')).toLowerCase();
  } catch {
    return name.toLowerCase();
  }
}
