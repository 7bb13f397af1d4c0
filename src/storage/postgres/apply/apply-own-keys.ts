// Applies what a configuration file says of an organization's own provider keys. A key is known by its name; another
// address under the same name is another key, which takes the place of the old one.

import type { ConfiguredOrganization, ConfiguredOwnKey } from '../../../domain/configuration/configuration.ts';
import { priceSchema } from '../../../domain/configuration/schema/price-schema.ts';
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

type Said = Pick<ConfiguredOrganization, 'slug' | 'byok' | 'ownKeys' | 'ownPrices'>;

export async function applyOwnKeys(application: Application, organizationId: string, said: Said): Promise<void> {
  const { client } = application;
  const { byok, ownKeys, ownPrices } = said;
  if (byok === null && ownKeys === null && ownPrices === null) return;
  if (byok !== null) {
    const written = await writeChanged(client, organizationId, byok);
    if (isRefused(written))
      throw new ConfigurationConflict(`organization "${said.slug}": byok: the fee ${written.reason ?? 'is wrong'}`);
  }
  const present = await listOwnKeys(client, organizationId);
  await refuseUnrated(application, organizationId, said);
  for (const wanted of ownKeys ?? []) await applyKey(application, organizationId, { wanted, present });
  if (application.prune && ownKeys !== null)
    for (const { id, name } of present) if (!ownKeys.some((key) => key.name === name)) await eraseOwnKey(client, id);
  for (const [model, words] of Object.entries(ownPrices ?? {})) {
    const stored = await storeOwnPrice(client, { organizationId, model, fields: priceSchema.parse(words) });
    if (stored === 'stored') continue;
    const problem =
      stored === 'no_such_model' ? `there is no model "${model}"` : `the price of "${model}" ${stored.problem}`;
    throw new ConfigurationConflict(`organization "${said.slug}": model_prices: ${problem}`);
  }
  await notifyOwnKeysChanged(client, organizationId);
}

/** A fee that is a share of a price needs one, of whatever model the file names at the provider. */
async function refuseUnrated(
  { client, box }: Application,
  organizationId: string,
  { slug, ownKeys }: Said,
): Promise<void> {
  const mapped = (ownKeys ?? []).filter(({ modelMap }) => Object.keys(modelMap).length > 0);
  const { fee } = await readByokSettings(client, organizationId);
  if (mapped.length === 0 || fee?.kind !== 'percent') return;
  const { models } = await readCatalog(client, box);
  const problems = mapped.flatMap((key) => {
    const name = unratedInMap(key, models, fee);
    return name === null
      ? []
      : `organization "${slug}": provider_credentials "${key.name}": model_map names "${name}", which has no price ` +
          'in the catalog that the fee could be a share of';
  });
  if (problems.length > 0) throw new ConfigurationConflict(problems.join('\n'));
}

async function applyKey(
  { client, box, pepper }: Application,
  organizationId: string,
  { wanted, present }: { readonly wanted: ConfiguredOwnKey; readonly present: readonly OwnKey[] },
): Promise<void> {
  const found = present.find(({ name }) => name === wanted.name);
  if (found !== undefined && addressOf(found) === addressOf(wanted)) {
    await client.query('UPDATE own_keys SET place = $2, fallback = $3, models = $4, model_map = $5 WHERE id = $1', [
      found.id,
      wanted.place,
      wanted.fallback,
      wanted.models,
      JSON.stringify(wanted.modelMap),
    ]);
    // Equal secrets have equal fingerprints; sealed anew they would be other bytes each time.
    if (found.fingerprint !== fingerprintOf(pepper, wanted.secret))
      await replaceSecret(client, { box, pepper }, found, {
        secret: wanted.secret,
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
