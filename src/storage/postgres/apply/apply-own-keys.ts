// Applies an organization's own provider keys, their settings and prices from a configuration file. A key is identified
// by its name. If the file gives a name another address, a new key replaces the old one.

import type { ConfiguredOrganization, ConfiguredOwnKey } from '../../../domain/configuration/configuration.ts';
import { priceSchema } from '../../../domain/configuration/schema/price-schema.ts';
import type { Catalog } from '../../../domain/models/catalog.ts';
import type { ByokFee } from '../../../domain/own-keys/byok-settings.ts';
import { destinationOfKind } from '../../../domain/own-keys/key-kinds.ts';
import { unratedInMap } from '../../../domain/own-keys/own-deployment.ts';
import type { OwnKey } from '../../../domain/own-keys/own-key.ts';
import { isRefused } from '../../../domain/refusals/refused.ts';
import { readCatalog } from '../catalog/catalog-store.ts';
import { notifyOwnKeysChanged } from '../changes.ts';
import { readByokSettings, writeChanged } from '../own-keys/byok-settings.ts';
import { listOwnKeys } from '../own-keys/list-own-keys.ts';
import { eraseOwnKey, fingerprintOf, insertOwnKey, replaceSecret } from '../own-keys/own-keys.ts';
import { storeOwnPrice } from '../own-keys/own-prices.ts';
import { type Application, ConfigurationConflict } from './application.ts';

type ConfiguredOwnKeys = Pick<ConfiguredOrganization, 'slug' | 'byok' | 'ownKeys' | 'ownPrices'>;

export async function applyOwnKeys(
  application: Application,
  organizationId: string,
  { slug, byok, ownKeys, ownPrices }: ConfiguredOwnKeys,
): Promise<void> {
  const { client } = application;
  if (byok === null && ownKeys === null && ownPrices === null) return;
  if (byok !== null) {
    const written = await writeChanged(client, organizationId, byok);
    if (isRefused(written))
      throw new ConfigurationConflict(`organization "${slug}": byok: the fee ${written.reason ?? 'is wrong'}`);
  }
  if (ownKeys !== null) await applyKeys(application, organizationId, { slug, ownKeys });
  for (const [model, words] of Object.entries(ownPrices ?? {})) {
    const stored = await storeOwnPrice(client, { organizationId, model, fields: priceSchema.parse(words) });
    if (stored === 'stored') continue;
    const problem =
      stored === 'no_such_model' ? `there is no model "${model}"` : `the price of "${model}" ${stored.problem}`;
    throw new ConfigurationConflict(`organization "${slug}": model_prices: ${problem}`);
  }
  await notifyOwnKeysChanged(client, organizationId);
}

interface OrganizationKeys {
  readonly slug: string;
  readonly ownKeys: readonly ConfiguredOwnKey[];
}

async function applyKeys(
  application: Application,
  organizationId: string,
  { slug, ownKeys }: OrganizationKeys,
): Promise<void> {
  const { client, box, prune } = application;
  const catalog = await readCatalog(client, box);
  refuseUnrated({ slug, ownKeys }, catalog, (await readByokSettings(client, organizationId)).fee);
  const present = await listOwnKeys(client, organizationId);
  for (const key of ownKeys) {
    const wanted = { ...key, givenFor: destinationOfKind(catalog, key) };
    await applyKey(application, organizationId, { wanted, present });
  }
  if (!prune) return;
  const named = new Set(ownKeys.map(({ name }) => name));
  for (const { id, name } of present) if (!named.has(name)) await eraseOwnKey(client, id);
}

/** Throws if the fee is a share of the price, and a model that the file names at the provider has no price. */
function refuseUnrated(
  { slug, ownKeys }: OrganizationKeys,
  { models }: Pick<Catalog, 'models'>,
  fee: ByokFee | null,
): void {
  const problems = ownKeys.flatMap((key) => {
    const name = unratedInMap(key, models, fee);
    return name === null
      ? []
      : `organization "${slug}": provider_credentials "${key.name}": model_map names "${name}", which has no price ` +
          'in the catalog that the fee could be a share of';
  });
  if (problems.length > 0) throw new ConfigurationConflict(problems.join('\n'));
}

type WantedKey = ConfiguredOwnKey & Pick<OwnKey, 'givenFor'>;

async function applyKey(
  { client, box, pepper, providers }: Application,
  organizationId: string,
  { wanted, present }: { readonly wanted: WantedKey; readonly present: readonly OwnKey[] },
): Promise<void> {
  const found = present.find(({ name }) => name === wanted.name);
  if (found !== undefined && addressOf(found) === addressOf(wanted)) {
    await client.query(
      `UPDATE own_keys SET place = $2, fallback = $3, models = $4, model_map = $5,
         given_for = coalesce(moved.given_for, own_keys.given_for),
         previous_sealed = CASE WHEN moved.given_for <> own_keys.given_for THEN NULL ELSE previous_sealed END,
         previous_until = CASE WHEN moved.given_for <> own_keys.given_for THEN NULL ELSE previous_until END
       FROM (SELECT CASE WHEN $6::boolean THEN $7::jsonb END AS given_for) AS moved WHERE id = $1`,
      [
        found.id,
        wanted.place,
        wanted.fallback,
        wanted.models,
        JSON.stringify(wanted.modelMap),
        // A file that has both the provider and the key decides where the key is sent. A previous secret must not
        // follow there, so it is erased. A file that has only the key is applied again at each start. Its key stays
        // bound to the old address if somebody has changed the provider since.
        found.givenFor === null || providers.has(wanted.kind),
        wanted.givenFor,
      ],
    );
    // Secrets are compared by fingerprint, because sealing the same secret gives other bytes each time.
    if (found.fingerprint !== fingerprintOf(pepper, wanted.secret))
      await replaceSecret(client, { box, pepper }, found, {
        secret: wanted.secret,
        givenFor: wanted.givenFor,
        overlapSeconds: 0,
        verdict: { state: 'unverified', reason: null },
      });
    return;
  }
  if (found !== undefined) await eraseOwnKey(client, found.id);
  await insertOwnKey(
    client,
    { box, pepper },
    {
      ...wanted,
      organizationId,
      teams: null,
      apiKeys: null,
      users: null,
      expiresAtMs: null,
      verdict: { state: 'unverified', reason: null },
    },
  );
}

function addressOf({ kind, settings, baseUrl }: Pick<OwnKey, 'kind' | 'settings' | 'baseUrl'>): string {
  return JSON.stringify([kind, Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1)), baseUrl]);
}
