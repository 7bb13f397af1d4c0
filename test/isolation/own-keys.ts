// The own provider keys of a run: organizations that all have keys for the same hosts, each key with its organization's
// mark. Decides which credential a call may carry and which organization a connection belongs to, and changes keys
// under load.

import { ADMIN_TOKEN, organizationIdOf, Tenant } from '../support/identity-world.ts';
import { askAgain } from './ask-again.ts';
import { findMarks, markOf } from './marks.ts';
import { OwnRefusals } from './own-refusals.ts';
import type { Exchange } from './plan.ts';
import type { Watch } from './watch.ts';
import { hasOwnKeys, MODELS, OWN_TENANTS, PROVIDERS, type ProviderId, providerKeyOf } from './world.ts';

/** The properties of an organization with own keys. */
interface OwnTraits {
  readonly fallback: boolean;
  /** Its keys are never refused, paused or cut off, so nothing that happens to others' keys may show in its answers. */
  readonly isSteady: boolean;
  /** Its own key is used to ask the classifier. */
  readonly isOwnClassifier: boolean;
}

export function ownTraits(tenant: number): OwnTraits {
  return { fallback: tenant % 2 === 0, isSteady: tenant % 4 < 2, isOwnClassifier: tenant % 3 === 0 };
}

/** Every provider, except that only an organization that asks the classifier itself has a key for the classifier's. */
function kindsOf(tenant: number): readonly ProviderId[] {
  return PROVIDERS.map(({ id }) => id).filter((id) => id !== 'judge' || ownTraits(tenant).isOwnClassifier);
}

/**
 * How long a change of a key may take to be heard. Changes are pushed, so this is shorter than the time after which a
 * process forgets what a lost notification would have changed.
 */
const HEARD_MS = 15_000;
const OVERLAP_SECONDS = 5;
/** The only kind whose keys are removed. Every model has another deployment, so the service is never used unasked. */
const REMOVED_KIND: ProviderId = 'plain-a';
const GENERATIONS_MAX = 1_000_000;

function secretOf(tenant: number, kind: ProviderId, generation: number): string {
  const place = PROVIDERS.findIndex(({ id }) => id === kind);
  return `sk-own-${markOf(tenant, 'k', place * GENERATIONS_MAX + generation)}-of-${kind}`;
}

/** The tenant's part of the configuration file. */
export function ownKeysConfiguration(tenant: number): object {
  const { fallback, isOwnClassifier } = ownTraits(tenant);
  const fee = tenant % 3 === 1 ? { fee: { per_request: '0.000001' } } : {};
  return {
    byok: { enabled: true, fallback, classifier: isOwnClassifier ? 'own' : 'service', ...fee },
    provider_credentials: kindsOf(tenant).map((kind) => ({ kind, name: kind, secret: secretOf(tenant, kind, 0) })),
  };
}

/** A credential that a provider received: the service's, or an organization's. */
export type ShownCredential =
  | { readonly owner: 'service' }
  | { readonly owner: 'organization'; readonly tenant: number; readonly kind: ProviderId; readonly generation: number }
  | { readonly owner: 'nobody' };

export function readCredential(head: string, id: ProviderId): ShownCredential {
  const auth = PROVIDERS.find((provider) => provider.id === id)?.auth ?? '';
  const name = auth === 'bearer' ? 'authorization: Bearer ' : 'x-api-key: ';
  const count = head.split(/\r\n(?:authorization|x-api-key):/i).length - 1;
  const secret = new RegExp(`\\r\\n${name}([^\\r]*)\\r\\n`).exec(head)?.[1] ?? '';
  if (count !== 1) return { owner: 'nobody' };
  if (secret === providerKeyOf(id)) return { owner: 'service' };
  const [mark] = findMarks(secret);
  if (mark === undefined || mark.kind !== 'k') return { owner: 'nobody' };
  const generation = mark.exchange % GENERATIONS_MAX;
  return secret === secretOf(mark.tenant, id, generation)
    ? { owner: 'organization', tenant: mark.tenant, kind: id, generation }
    : { owner: 'nobody' };
}

/** An organization's key for one kind. */
interface KeptKey {
  id: string;
  generation: number;
  /** By generation: when a replaced key ceased to be valid, after its overlap. It may be seen for HEARD_MS more. */
  readonly endedAtMs: Map<number, number>;
}

export class OwnKeys {
  private readonly url: string;
  private readonly watch: () => Watch;
  private readonly kept = new Map<string, KeptKey>();
  private readonly tenants = new Map<number, Tenant>();
  private changes = 0;
  private readonly refusals: OwnRefusals;

  constructor(url: string, watch: () => Watch) {
    this.url = url;
    this.watch = watch;
    this.refusals = new OwnRefusals(url);
  }

  private keptKey(tenant: number, kind: ProviderId): KeptKey {
    const name = `${tenant} ${kind}`;
    let key = this.kept.get(name);
    if (key === undefined) {
      key = { id: '', generation: 0, endedAtMs: new Map() };
      this.kept.set(name, key);
    }
    return key;
  }

  /** Whether an honest provider would accept the credential. */
  accepts(shown: ShownCredential): boolean {
    return shown.owner === 'organization' && !this.isStale(shown);
  }

  private isStale({ tenant, kind, generation }: Extract<ShownCredential, { owner: 'organization' }>): boolean {
    const endedAtMs = this.keptKey(tenant, kind).endedAtMs.get(generation);
    return endedAtMs !== undefined && performance.now() > endedAtMs + HEARD_MS;
  }

  /** Checks the credential of a call for an exchange of this tenant. */
  checkCall({ index, tenant, kind }: Exchange, shown: ShownCredential, id: ProviderId): void {
    const wrong = (what: string): void =>
      this.watch().violation('wrong credential', `${id}: exchange ${index} of tenant ${tenant} (${kind}): ${what}`);
    if (shown.owner === 'nobody') return wrong('no credential that anybody has');
    if (shown.owner === 'organization') {
      if (shown.tenant !== tenant) wrong(`with the key of tenant ${shown.tenant}`);
      else if (this.isStale(shown)) wrong(`with its key ${shown.generation}, which was replaced or removed`);
      return;
    }
    if (!hasOwnKeys(tenant)) return;
    const { fallback, isSteady } = ownTraits(tenant);
    if (!fallback) wrong('with the key of the service, which may not step in');
    else if (isSteady) wrong('with the key of the service, though its own keys serve');
  }

  /** A steady organization's first key is tried first: nothing that happened to others there may postpone it. */
  checkOrder({ index, tenant, kind, models, calledProviders }: Exchange, id: ProviderId): void {
    const isKept = kind === 'saved' || kind === 'continued' || models.length !== 1;
    if (isKept || calledProviders.length > 0 || !hasOwnKeys(tenant) || !ownTraits(tenant).isSteady) return;
    const serving = new Set(
      MODELS.find((model) => model.id === models[0])?.deployments.map(({ provider }) => provider),
    );
    // A key that was removed and created again comes last.
    const first = PROVIDERS.find((provider) => serving.has(provider.id) && provider.id !== REMOVED_KIND)?.id;
    if (id !== REMOVED_KIND && id !== first)
      this.watch().violation('foreign pause', `exchange ${index} of tenant ${tenant}: ${id} is called before ${first}`);
  }

  /** Checks a refusal by the gateway itself: another organization's trouble must not be its reason. */
  checkRefusal(exchange: Exchange, status: number, refusal: string): void {
    const { index, tenant, kind, models } = exchange;
    const code = /upstream_cooldown|byok_key_unavailable/.exec(refusal)?.[0];
    if (code === undefined) return;
    const watch = this.watch();
    if (!hasOwnKeys(tenant)) {
      if (code !== 'upstream_cooldown' || !models.includes('iso/cool'))
        watch.violation('foreign pause', `exchange ${index} of tenant ${tenant} (${kind}): ${status} ${code}`);
      return;
    }
    // The database had no time for this gateway: it did not know the keys, so none of them was paused.
    if (/could not be looked up/.test(refusal)) return watch.count(watch.faults, 'own keys not looked up in time');
    // A saved response stays with the key that made it, which may be gone.
    if (!ownTraits(tenant).isSteady || kind === 'saved' || kind === 'continued') return;
    const keys = async (): Promise<unknown> => ask(await this.tenantOf(tenant), 'GET', '/provider-credentials');
    this.refusals.look({ exchange, status, code, keys }, watch);
  }

  /** Resolves when every odd refusal has been examined. */
  settled(): Promise<void> {
    return this.refusals.settled();
  }

  /** Replaces or removes one of the keys, in turn. */
  async change(): Promise<void> {
    const place = this.changes;
    this.changes += 1;
    const tenant = OWN_TENANTS[(place * 7) % OWN_TENANTS.length] ?? 0;
    const isRemoval = place % 3 === 2;
    const kinds = kindsOf(tenant);
    const kind = isRemoval ? REMOVED_KIND : (kinds[place % kinds.length] ?? REMOVED_KIND);
    const watch = this.watch();
    watch.count(watch.faults, isRemoval ? 'own key removed and made anew' : 'own key rotated');
    const as = await this.tenantOf(tenant);
    const key = this.keptKey(tenant, kind);
    if (key.id === '') await this.findIds(as, tenant);
    if (isRemoval) await this.removeAndMake(as, { tenant, kind, key });
    else await this.rotate(as, { tenant, kind, key });
  }

  private async tenantOf(tenant: number): Promise<Tenant> {
    let as = this.tenants.get(tenant);
    if (as === undefined) {
      as = await askAgain(async () =>
        Tenant.adopt(this.url, await organizationIdOf(this.url, ADMIN_TOKEN, `tenant-${tenant}`)),
      );
      this.tenants.set(tenant, as);
    }
    return as;
  }

  private async findIds(as: Tenant, tenant: number): Promise<void> {
    const listed = (await ask(as, 'GET', '/provider-credentials')) as unknown as readonly {
      id: string;
      kind: string;
    }[];
    for (const { id, kind } of listed) this.keptKey(tenant, kind as ProviderId).id = id;
  }

  private async rotate(as: Tenant, { tenant, kind, key }: ChangedKey): Promise<void> {
    const before = key.generation;
    key.generation += 1;
    const overlap = before % 2 === 0 ? 0 : OVERLAP_SECONDS;
    const rotated = { secret: secretOf(tenant, kind, key.generation), overlap_seconds: overlap };
    await ask(as, 'POST', `/provider-credentials/${key.id}/rotate`, rotated);
    key.endedAtMs.set(before, performance.now() + overlap * 1_000);
  }

  private async removeAndMake(as: Tenant, { tenant, kind, key }: ChangedKey): Promise<void> {
    await ask(as, 'DELETE', `/provider-credentials/${key.id}`);
    key.endedAtMs.set(key.generation, performance.now());
    key.generation += 1;
    const made = { kind, name: `${kind} ${key.generation}`, secret: secretOf(tenant, kind, key.generation) };
    key.id = String((await ask(as, 'POST', '/provider-credentials', made, 201))['id']);
  }
}

interface ChangedKey {
  readonly tenant: number;
  readonly kind: ProviderId;
  readonly key: KeptKey;
}

const ask = (as: Tenant, ...call: Parameters<Tenant['as']>): ReturnType<Tenant['as']> => askAgain(() => as.as(...call));
