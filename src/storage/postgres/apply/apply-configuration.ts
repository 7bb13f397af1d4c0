// Applies a configuration file to the database in one transaction: it upserts what the file has and leaves everything
// else alone, unless told to remove what the file's sections no longer have. Applying a file again changes nothing and
// notifies nobody.

import type { Configuration } from '../../../domain/configuration/configuration.ts';
import { type CatalogKind, type Difference, findDifferences } from '../../../domain/configuration/difference.ts';
import type { Refused } from '../../../domain/refusals/refused.ts';
import { REMOVE } from '../catalog/catalog-operations.ts';
import { readCatalogStates } from '../catalog/catalog-states.ts';
import { readWarnings } from '../catalog/catalog-warnings.ts';
import { changeCatalog } from '../catalog/change-catalog.ts';
import { putModels, releaseAliases } from '../catalog/model-changes.ts';
import { putProvider } from '../catalog/provider-changes.ts';
import { notifyPrincipalsChanged } from '../changes.ts';
import { OWNER_FLOOR_SQLSTATE } from '../identity/change.ts';
import type { InstallationSecrets } from '../installation-secrets.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { transactionOrRollback } from '../rollback.ts';
import { putPolicyVersion, refuseUse } from '../routing/policies.ts';
import { type Application, ConfigurationConflict, type GeneratedKey } from './application.ts';
import { applyGuardrails, readGuardrailStates, removeOtherGuardrails } from './apply-guardrails.ts';
import { applyOrganization } from './apply-organization.ts';
import { auditApplication, FILE, organizationDifferences, readOrganizationStates } from './audit-application.ts';

export interface AppliedConfiguration {
  /** New keys that the file names without a secret; they are shown now and never again. */
  readonly generatedKeys: readonly GeneratedKey[];
  readonly catalogVersion: number;
  readonly catalogChanged: boolean;
  readonly differences: readonly Difference[];
  /** Settings that are allowed but likely to be mistakes. */
  readonly warnings: readonly string[];
}

export interface ApplyOptions {
  /** Removes what the sections of the file no longer have. */
  readonly prune?: boolean;
  /** Only reports what would change. */
  readonly dryRun?: boolean;
}

/**
 * Throws a ConfigurationConflict (application.ts) and changes nothing when the file contradicts what was applied
 * before.
 */
export async function applyConfiguration(
  postgres: Postgres,
  configuration: Configuration,
  { box, pepper }: Pick<InstallationSecrets, 'box' | 'pepper'>,
  { prune = false, dryRun = false }: ApplyOptions = {},
): Promise<AppliedConfiguration> {
  return transactionOrRollback(postgres, async (client, rollBack) => {
    const providers = new Set(configuration.providers.map(({ id }) => id));
    const application = { client, box, pepper, prune, providers, changedIds: [], generatedKeys: [] };
    const applied = await applyIn(application, configuration);
    return dryRun ? rollBack(applied) : applied;
  });
}

async function applyIn(application: Application, configuration: Configuration): Promise<AppliedConfiguration> {
  const { client } = application;
  const slugs = configuration.organizations.map(({ slug }) => slug);
  const guardrailsBefore = await readGuardrailStates(client);
  const catalog = await changeCatalog(client, FILE, async () => {
    const before = await readOrganizationStates(client, slugs);
    // The constraint "an organization has an owner" is checked at the end, since the file may name the next owner after
    // the last one.
    await client.query('SET CONSTRAINTS ALL DEFERRED');
    await applyParts(application, configuration);
    await checkOwners(client);
    const after = await readOrganizationStates(client, slugs);
    await auditApplication(client, before, after);
    return organizationDifferences(before, after);
  });
  await notifyPrincipalsChanged(client, application.changedIds);
  return {
    generatedKeys: application.generatedKeys,
    catalogVersion: catalog.version,
    catalogChanged: catalog.changed,
    differences: [
      ...catalog.differences,
      ...findDifferences(guardrailsBefore, await readGuardrailStates(client)),
      ...catalog.result,
    ],
    warnings: await readWarnings(client),
  };
}

async function applyParts(application: Application, configuration: Configuration): Promise<void> {
  const { client, box } = application;
  const { providers, models, routingPolicies, organizations } = configuration;
  const surplus = application.prune ? await findSurplus(client, configuration) : [];
  // An alias may move from a model that is removed to one that is new.
  await releaseAliases(
    client,
    surplus.filter(({ kind }) => kind === 'model').map(({ id }) => id),
  );
  for (const provider of providers) expectDone(await putProvider(client, box, provider));
  expectDone(await putModels(client, models));
  for (const { name, definition } of routingPolicies) await putPolicyVersion(client, name, definition);
  await applyGuardrails(application, configuration);
  const checked = new Set(routingPolicies.map(({ name }) => name));
  for (const organization of organizations) {
    const id = await applyOrganization(application, organization);
    const policy = organization.autoRouting?.policy ?? null;
    // The file was checked only with its own policies. This policy is a stored one, which must be checked here.
    if (policy !== null && !checked.has(policy))
      expectDone(await refuseUse(client, id, policy), `organization "${organization.slug}": the routing policy `);
  }
  await removeOtherGuardrails(application, configuration);
  for (const { kind, id } of surplus)
    expectDone(await REMOVE[kind](client, id), `the ${kind.replace('_', ' ')} "${id}" cannot be removed: `);
}

interface Surplus {
  readonly kind: CatalogKind;
  readonly id: string;
}

/** The stored entries that a section of the file lacks, for the kinds whose section the file has. */
async function findSurplus(client: PostgresClient, configuration: Configuration): Promise<readonly Surplus[]> {
  const { sections, providers, models, routingPolicies } = configuration;
  const listed = {
    routing_policy: { section: 'routing_policies', ids: routingPolicies.map(({ name }) => name) },
    model: { section: 'models', ids: models.map(({ id }) => id) },
    provider: { section: 'providers', ids: providers.map(({ id }) => id) },
  } as const;
  const states = await readCatalogStates(client);
  return Object.entries(listed).flatMap(([kind, { section, ids }]) =>
    sections.includes(section)
      ? states.filter((state) => state.kind === kind && !(ids as readonly string[]).includes(state.id))
      : [],
  );
}

function expectDone(refused: Refused | null, before = ''): void {
  if (refused !== null) throw new ConfigurationConflict(`${before}${refused.reason ?? refused.refused}`);
}

async function checkOwners(client: PostgresClient): Promise<void> {
  try {
    await client.query('SET CONSTRAINTS ALL IMMEDIATE');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === OWNER_FLOOR_SQLSTATE) {
      throw new ConfigurationConflict(`it takes the role of owner from the last one: ${error.message}`, {
        cause: error,
      });
    }
    throw error;
  }
}
