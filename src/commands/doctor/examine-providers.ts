// The checks of `tollgate doctor` at the providers: whether each can be reached and accepts its key, whether it has the
// models that the file names, and whether its clock differs from ours.

import type { Config, Environment } from '../../config.ts';
import { SECRET_MEMBER } from '../../domain/configuration/schema/token-schema.ts';
import type { ConfigurationText } from '../../domain/configuration-text/configuration-text.ts';
import { nearestNames } from '../../domain/list-prices/nearest-names.ts';
import type { Provider } from '../../domain/models/provider.ts';
import { systemClock } from '../../platform/clock.ts';
import { listModels, type ModelList, type ProviderModel } from '../../upstream/list-models.ts';
import type { Providers } from '../../upstream/providers.ts';
import { proxyOf } from '../../upstream/proxy-of.ts';
import { type Verification, verifyProvider } from '../../upstream/verify-provider.ts';
import { type CallableProvider, callableProvider, withProviders } from '../configuration-file/call-providers.ts';
import { type FileProvider, listOf, providersOf } from '../configuration-file/configuration-text.ts';
import { type Finding, note, ok, wrong } from './finding.ts';

interface Deployment {
  readonly model: string;
  readonly provider: string;
  readonly providerModel: string;
  readonly isPriced: boolean;
}

interface Examined {
  readonly findings: readonly Finding[];
  /** How far the provider's clock is ahead of ours; null: the provider does not say. */
  readonly skewMs: number | null;
}

export async function examineProviders(
  file: ConfigurationText,
  config: Config,
  environment: Environment,
): Promise<readonly Finding[]> {
  const deployments = deploymentsOf(file);
  const providers = providersOf(file);
  const examined = await withProviders(environment, (through) =>
    Promise.all(
      providers.map(async (provider): Promise<Examined> => {
        const callable = await callableProvider(provider.entry, environment);
        if (!callable.ok) return { findings: [notCallable(provider, callable)], skewMs: null };
        const own = deployments.filter((deployment) => deployment.provider === provider.id);
        return examineProvider({ provider, callable: callable.provider, own, through, config });
      }),
    ),
  );
  return [
    ...examined.flatMap(({ findings }) => findings),
    ...examineClock(examined.flatMap(({ skewMs }) => (skewMs === null ? [] : [skewMs]))),
    ...examinePrices(deployments, billedBy(file)),
  ];
}

/** Mistakes in its entry are among the mistakes of the file already. */
function notCallable(
  { id, entry }: FileProvider,
  { lacks, reason }: Extract<CallableProvider, { readonly ok: false }>,
): Finding {
  if (lacks === 'entry') return note(`provider "${id}" is not called: it ${reason}`);
  const variable = variableOf(tokenOf(entry)?.secret);
  return wrong(`provider "${id}" ${reason}${variable === null ? '' : `: see ${variable} in the environment`}`);
}

interface ProviderParams {
  readonly provider: FileProvider;
  readonly callable: Provider;
  readonly own: readonly Deployment[];
  readonly through: Providers;
  readonly config: Config;
}

async function examineProvider({ provider, callable, own, through, config }: ProviderParams): Promise<Examined> {
  const route = routeOf(callable, config);
  const verification = await verifyProvider(callable, through);
  const { result, reason } = verification;
  const name = `provider "${provider.id}" (${callable.baseUrl}${route})`;
  if (result === 'unreachable' || result === 'rejected')
    return { findings: [wrong(`${name} ${reason}${adviceOf(verification, route, provider)}`)], skewMs: null };
  const sentMs = systemClock.nowMs();
  const list = await listModels(callable, through);
  const skewMs = list.clockMs === null ? null : list.clockMs - (sentMs + systemClock.nowMs()) / 2;
  const key = result === 'good' ? ok(`${name} ${reason}`) : note(`${name} ${reason}`);
  return { findings: [key, ...examineModels(provider, nameListOf(callable, list), own)], skewMs };
}

function adviceOf({ result, status }: Verification, route: string, { entry }: FileProvider): string {
  // An answer came through the proxy, so the proxy is not the problem.
  if (result === 'unreachable')
    return route === '' || status !== null ? '' : ': is the proxy right (HTTPS_PROXY, NO_PROXY, proxy)?';
  const token = tokenOf(entry);
  if (token !== null && token.kind !== 'aws')
    return ': it was asked with a token, so the account has no role there that lets it, or scope is wrong';
  const variable = variableOf(token === null ? (entry as { api_key?: unknown }).api_key : token.secret);
  const where = token === null ? 'its api_key' : 'access_key_id and secret_access_key of its token';
  const place = variable === null ? where : `${variable} in the environment`;
  // AWS tokens are signed with a time, so a wrong clock breaks them.
  return `: see ${place}${token === null ? '' : ', and the clock of this machine'}`;
}

/** The name of the variable that the text consists of; null: it is no variable. */
function variableOf(text: unknown): string | null {
  return typeof text === 'string' ? (/^\$\{(\w+)\}$/.exec(text)?.[1] ?? null) : null;
}

/** null: the provider has a key instead of a token. */
function tokenOf(entry: unknown): { readonly kind: string; readonly secret: unknown } | null {
  const { token } = entry as { readonly token?: Readonly<Record<string, unknown>> };
  const kind = token?.['kind'];
  if (token === undefined || (kind !== 'google' && kind !== 'entra' && kind !== 'aws')) return null;
  return { kind, secret: token[SECRET_MEMBER[kind]] };
}

/** The proxy through which the provider is called, without the proxy's password. */
function routeOf({ baseUrl, requests }: Provider, { proxies }: Config): string {
  const proxy = proxyOf(new URL(baseUrl).origin, requests?.proxy, proxies);
  if (proxy === null) return '';
  const { protocol, host } = new URL(proxy);
  return `, through the proxy ${protocol}//${host}`;
}

/** Names that a request says in another member than `model`, such as Perplexity's presets, are in no list of models. */
function nameListOf({ requests }: Provider, list: ModelList): ModelList {
  const members = Object.values(requests?.apis ?? {}).flatMap(({ insteadOfModel = {} }) =>
    Object.entries(insteadOfModel),
  );
  const other = members.find(([name, value]) => name !== 'model' && value.includes('{model}'));
  return other === undefined ? list : { ...list, models: null, reason: `is told "${other[0]}" instead of a model` };
}

/** Azure lists the models of a resource, but not its deployments. */
const LISTS_NO_DEPLOYMENTS = new Set(['azure', 'azure-classic', 'azure-anthropic']);

function examineModels(
  { id, preset }: FileProvider,
  { models, reason }: ModelList,
  own: readonly Deployment[],
): Finding[] {
  if (own.length === 0) return [note(`provider "${id}" serves no model of the file`)];
  if (preset !== null && LISTS_NO_DEPLOYMENTS.has(preset)) return [];
  if (models === null) return [note(`provider "${id}" ${reason}, so its models cannot be checked`)];
  const missing = own.filter(({ providerModel }) => !isListed(providerModel, models));
  if (missing.length === 0)
    return [ok(`provider "${id}" lists ${own.length === 1 ? 'the model' : `all ${own.length} models`} of the file`)];
  return missing.map(({ model, providerModel }) => {
    const near = nearestNames(
      providerModel,
      models.map((one) => one.id),
    );
    const hint = near.length === 0 ? '' : `; names like it: ${near.join(', ')}`;
    return wrong(`model "${model}": provider "${id}" does not list "${providerModel}" for this key${hint}`);
  });
}

/** Some providers accept a name without its date and list it with one, or the other way round. */
function isListed(name: string, models: readonly ProviderModel[]): boolean {
  const plain = withoutDate(name);
  return models.some(({ id }) => id === name || withoutDate(id) === plain);
}

function withoutDate(name: string): string {
  return name.replace(/-(?:latest|20\d{6}|20\d\d-\d\d-\d\d)$/, '').replace(/:latest$/, '');
}

/**
 * Warns early: with a clock that is off by about five minutes, providers refuse tokens and receivers refuse signatures
 * of webhooks.
 */
const SKEW_MS_MAX = 60_000;

/** If one provider's clock agrees with ours, the other providers' clocks are wrong. */
function examineClock(skews: readonly number[]): Finding[] {
  const [least] = skews.toSorted((one, other) => Math.abs(one) - Math.abs(other));
  if (least === undefined) return [];
  const seconds = Math.round(Math.abs(least) / 1_000);
  if (Math.abs(least) <= SKEW_MS_MAX) return [ok('the clock of this machine agrees with the providers')];
  return [
    wrong(`the clock of this machine is ${seconds} seconds ${least > 0 ? 'behind' : 'ahead of'} that of the providers`),
  ];
}

function deploymentsOf(file: ConfigurationText): readonly Deployment[] {
  return listOf(file.values['models']).flatMap((model) =>
    listOf(model['served_by']).map((deployment) => ({
      model: String(model['id']),
      provider: String(deployment['provider']),
      providerModel: String(deployment['model']),
      isPriced: deployment['price'] !== undefined || deployment['via'] !== undefined,
    })),
  );
}

function billedBy(file: ConfigurationText): readonly string[] {
  return listOf(file.values['organizations'])
    .filter((organization) => organization['billing'] === 'prepaid')
    .map((organization) => String(organization['slug']));
}

function examinePrices(deployments: readonly Deployment[], billed: readonly string[]): Finding[] {
  return deployments
    .filter(({ isPriced }) => !isPriced)
    .map(({ model, provider }) => {
      const text = `model "${model}" has no price at provider "${provider}"`;
      const [first] = billed;
      return first === undefined
        ? note(`${text}: only organizations that are not billed can use it there`)
        : wrong(`${text}: requests of billed organizations ("${first}") are not served there`);
    });
}
