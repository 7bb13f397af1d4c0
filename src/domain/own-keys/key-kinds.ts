// The kinds of own keys: the providers that an organization can have a key for, the settings of each kind, and the
// provider that requests with such a key are sent to.

import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from '../configuration/presets.ts';
import { configuredProvider } from '../configuration/schema/provider-schema.ts';
import { readRequestSettings } from '../configuration/schema/request-settings.ts';
import { API_NAMES, type ApiName } from '../models/apis.ts';
import type { Catalog, Model } from '../models/catalog.ts';
import { destinationOf, type KeyDestination, otherDestination } from '../models/key-destination.ts';
import type { Provider } from '../models/provider.ts';
import type { ByokGrant } from './byok-settings.ts';
import type { KeyAddress, OwnKey } from './own-key.ts';

const CUSTOM_KIND = 'custom';

export interface KeyKind {
  readonly name: string;
  /** The settings that a key of this kind must or may have. */
  readonly settings: readonly { readonly name: string; readonly isNeeded: boolean }[];
  readonly needsBaseUrl: boolean;
  readonly apis: readonly ApiName[];
}

/** Presets with a key. Presets without one are servers of the operator, which no organization has a key for. */
const HOSTED = PRESET_NAMES.filter((name) => PRESETS[name].keyVariable !== null);

/** Every kind that the platform could open: configured providers, presets and custom hosts. */
export function allKinds(catalog: Pick<Catalog, 'models'>): readonly KeyKind[] {
  const configured = configuredProviders(catalog);
  const ofProviders = [...configured.values()].map(
    ({ id, apis }): KeyKind => ({ name: id, ...settingsOf(presetOf(id)), needsBaseUrl: false, apis }),
  );
  const ofPresets = HOSTED.filter((name) => !configured.has(name)).map((name): KeyKind => {
    const preset: Preset = PRESETS[name];
    return { name, ...settingsOf(preset), needsBaseUrl: false, apis: preset.serves };
  });
  return [...ofProviders, ...ofPresets, { name: CUSTOM_KIND, settings: [], needsBaseUrl: true, apis: API_NAMES }];
}

/** The kinds that the platform allows an organization. */
export function openKinds(catalog: Pick<Catalog, 'models'>, grant: ByokGrant): readonly KeyKind[] {
  return grant.enabled ? allKinds(catalog).filter(({ name }) => isOpen(name, grant)) : [];
}

export function isOpen(kind: string, { kinds, customBaseUrl }: ByokGrant): boolean {
  if (kind === CUSTOM_KIND && !customBaseUrl) return false;
  return kinds === null || kinds.includes(kind);
}

function presetOf(name: string): Preset | null {
  return (HOSTED as readonly string[]).includes(name) ? PRESETS[name as PresetName] : null;
}

function settingsOf(preset: Preset | null): Pick<KeyKind, 'settings'> {
  const parameters = Object.entries(preset?.parameters ?? {});
  return { settings: parameters.map(([name, { default: usual }]) => ({ name, isNeeded: usual === undefined })) };
}

interface ProviderInUse {
  readonly id: string;
  readonly provider: Provider;
  readonly apis: readonly ApiName[];
}

/** Cached by a catalog's list of models, since every key of an organization asks for the same. */
const providersOf = new WeakMap<readonly Model[], ReadonlyMap<string, ProviderInUse>>();

/** The providers that serve a model, with the APIs that they serve it on. */
function configuredProviders({ models }: Pick<Catalog, 'models'>): ReadonlyMap<string, ProviderInUse> {
  let known = providersOf.get(models);
  if (known === undefined) {
    known = findProviders(models);
    providersOf.set(models, known);
  }
  return known;
}

function findProviders(models: readonly Model[]): ReadonlyMap<string, ProviderInUse> {
  const found = new Map<string, ProviderInUse>();
  for (const { servedBy } of models) {
    for (const { provider, apis, via } of servedBy) {
      if (!provesKeys(provider)) continue;
      const known = new Set(found.get(provider.id)?.apis);
      for (const api of via === undefined ? apis : []) known.add(api);
      found.set(provider.id, { id: provider.id, provider, apis: API_NAMES.filter((api) => known.has(api)) });
    }
  }
  return found;
}

/**
 * Whether the provider checks keys. One that asks for no key, or that knows the gateway by its certificate, would serve
 * anybody's key on the operator's account.
 */
function provesKeys({ auth, requests }: Provider): boolean {
  return auth !== 'none' && requests?.tls?.cert === undefined;
}

export interface KeyProblem {
  readonly field: string;
  readonly reason: string;
}

/** The provider that requests with an own key are sent to, still without the key. */
export interface OwnProvider {
  readonly provider: Provider;
  /** The APIs that `model_map` can name models for. */
  readonly apis: readonly ApiName[];
  /** The key's owner influences the address, so every connection is checked against the egress rules. */
  readonly isGuarded: boolean;
}

/**
 * Customers write these settings, and they become part of an address, so no character may end a host name or begin
 * another part of the address.
 */
const SETTING = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const BASE_URL_LENGTH_MAX = 2_000;

/** The provider that requests with a key of this kind are sent to, or the field that is wrong. */
export function ownProvider(
  catalog: Pick<Catalog, 'models'>,
  kind: string,
  { settings, baseUrl }: KeyAddress,
): OwnProvider | KeyProblem {
  if (kind === CUSTOM_KIND) return customProvider(settings, baseUrl);
  if (baseUrl !== null) return { field: 'base_url', reason: `is only for the kind ${CUSTOM_KIND}` };
  const bad = Object.entries(settings).find(([, value]) => !SETTING.test(value));
  if (bad !== undefined) return { field: `settings.${bad[0]}`, reason: 'must be letters, digits and inner hyphens' };
  const configured = configuredProviders(catalog).get(kind);
  if (configured !== undefined && Object.keys(settings).length === 0) {
    // Only the provider's address and how it is called: nothing that identifies the operator's account.
    const { id, baseUrl: address, auth, onDisconnect, timeouts, requests } = configured.provider;
    const called = { ...(timeouts === undefined ? {} : { timeouts }), ...(requests === undefined ? {} : { requests }) };
    const provider = { id, baseUrl: address, apiKey: '', auth, onDisconnect, ...called };
    return { provider, apis: configured.apis, isGuarded: false };
  }
  return presetProvider(kind, settings);
}

function presetProvider(kind: string, settings: Readonly<Record<string, string>>): OwnProvider | KeyProblem {
  const preset = presetOf(kind);
  if (preset === null)
    return Object.keys(settings).length === 0
      ? { field: 'kind', reason: 'is no provider that an own key could be for' }
      : { field: 'settings', reason: 'are for kinds that take some, and this one takes none' };
  const written = {
    id: kind,
    preset: kind,
    api_key: 'unknown',
    ...(Object.keys(settings).length === 0 ? {} : { with: settings }),
  };
  const read = configuredProvider.safeParse(written);
  if (!read.success) return { field: 'settings', reason: read.error.issues[0]?.message ?? 'are wrong' };
  const { requests, ...provider } = read.data;
  return {
    provider: { ...provider, apiKey: '', ...(requests === null ? {} : { requests: readRequestSettings(requests) }) },
    apis: preset.serves,
    isGuarded: Object.keys(settings).length > 0,
  };
}

const AUTHS = ['bearer', 'x-api-key', 'api-key'];

function customProvider(settings: Readonly<Record<string, string>>, baseUrl: string | null): OwnProvider | KeyProblem {
  const { auth = 'bearer', ...others } = settings;
  if (Object.keys(others).length > 0 || !AUTHS.includes(auth))
    return { field: 'settings', reason: `of this kind can only say auth: ${AUTHS.join(', ')}` };
  const problem = baseUrl === null ? 'is missing' : customUrlProblem(baseUrl);
  if (baseUrl === null || problem !== null) return { field: 'base_url', reason: problem ?? 'is missing' };
  const provider = { id: CUSTOM_KIND, baseUrl: baseUrl.replace(/\/+$/, ''), apiKey: '', auth, onDisconnect: 'cancel' };
  return { provider: provider as Provider, apis: API_NAMES, isGuarded: true };
}

/** What the address must be; null: it is right. Whether its host may be called is decided at each connection. */
function customUrlProblem(text: string): string | null {
  const mustBe = 'must be an https:// address without credentials, query or fragment';
  if (text.length > BASE_URL_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return mustBe;
  const { protocol, username, password, search, hash, pathname } = new URL(text);
  if (protocol !== 'https:' || username !== '' || password !== '' || /[?#@\\]/.test(text)) return mustBe;
  if (search !== '' || hash !== '' || /(^|\/)(\.|%2e){1,2}(\/|$)/i.test(text.slice('https://'.length))) return mustBe;
  return /^[/A-Za-z0-9._~:@!$&'()*+,;=%-]*$/.test(pathname) ? null : mustBe;
}

export function isKeyProblem(found: OwnProvider | KeyProblem): found is KeyProblem {
  return 'reason' in found;
}

/** The destination of a kind's provider; null: there is no such provider. */
export function destinationOfKind(
  catalog: Pick<Catalog, 'models'>,
  { kind, ...address }: KeyAddress & { readonly kind: string },
): KeyDestination | null {
  const own = ownProvider(catalog, kind, address);
  return isKeyProblem(own) ? null : destinationOf(own.provider);
}

/**
 * How the provider has changed from the destination that the secret was given for, such as "another address"; null: it
 * has not.
 */
export function secretNeededFor({ givenFor }: Pick<OwnKey, 'givenFor'>, { provider }: OwnProvider): string | null {
  return givenFor === null ? null : otherDestination(givenFor, destinationOf(provider));
}
