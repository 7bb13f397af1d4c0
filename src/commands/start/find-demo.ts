// Distinguishes a demo that `tollgate start` made from an installation of an owner. An owner's entry must never be
// taken for the demo's: a start without a file would reset it to the demo's, and a simulated provider would answer for
// the owner's.

import { isKnownKey, isProviderKey } from '../../storage/postgres/apply/known-secrets.ts';
import { readStoredNames } from '../../storage/postgres/apply/stored-names.ts';
import { readCatalogStates } from '../../storage/postgres/catalog/catalog-states.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { PostgresClient } from '../../storage/postgres/pool.ts';
import { DEMO_ORGANIZATION } from './demo-console.ts';
import { readDemoKey } from './demo-key.ts';

/** The provider of deploy/demo.yaml in every version. A model of another version may have any name below `sim/`. */
const DEMO_PROVIDER = { id: 'sim', apiKey: 'simulated-provider-key' };
const DEMO_MODEL = /^sim\//;
const LOCAL_ADDRESS = /^http:\/\/127\.0\.0\.1:(\d+)$/;

export interface FoundDemo {
  /** True: the database contains nothing, or only the demo that was made from this data directory. */
  readonly isDemo: boolean;
  /** The port of the demo's own simulated provider at its last start; null: there is none. */
  readonly simulatedProviderPort: string | null;
}

const NO_DEMO: FoundDemo = { isDemo: false, simulatedProviderPort: null };

/**
 * Names prove nothing, because an owner may use them too. Only a start of the demo leaves its key in the data directory
 * and the hash of that key in the database.
 */
export async function findDemo(
  postgres: PostgresClient,
  { dataDirectory, opened }: { readonly dataDirectory: string; readonly opened: InstallationSecrets },
): Promise<FoundDemo> {
  const { organizations, providers, modelIds, policies, guardrails } = await readStoredNames(postgres);
  const slugs = [...organizations.keys()];
  if ([slugs, providers, modelIds, policies, guardrails].every(({ length }) => length === 0))
    return { isDemo: true, simulatedProviderPort: null };
  const key = readDemoKey(dataDirectory);
  if (key === null || !(await isKnownKey(postgres, opened, key))) return NO_DEMO;
  const simulatedProviderPort = await findSimulatedProvider(postgres, opened);
  const isDemo =
    slugs.every((slug) => slug === DEMO_ORGANIZATION) &&
    modelIds.every((id) => DEMO_MODEL.test(id)) &&
    providers.every((id) => id === DEMO_PROVIDER.id && simulatedProviderPort !== null);
  return { isDemo, simulatedProviderPort };
}

/** Even in a demo's data directory, the owner may have given the provider another address or key. */
async function findSimulatedProvider(postgres: PostgresClient, opened: InstallationSecrets): Promise<string | null> {
  const provider = (await readCatalogStates(postgres, 'provider')).find(({ id }) => id === DEMO_PROVIDER.id);
  const [, port = null] = LOCAL_ADDRESS.exec(String(provider?.fields.base_url)) ?? [];
  return port !== null && (await isProviderKey(postgres, opened, DEMO_PROVIDER)) ? port : null;
}
