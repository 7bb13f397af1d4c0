// Applies a configuration file to the database in one transaction: it upserts what the file has and leaves everything
// else alone. Applying a file again changes nothing and notifies nobody.

import type { Configuration } from '../../../domain/configuration/configuration.ts';
import { derivePepper } from '../../../domain/identity/key-hash.ts';
import { notifyCatalogChanged, notifyPrincipalsChanged } from '../changes.ts';
import { OWNER_FLOOR_SQLSTATE } from '../identity/change.ts';
import type { Postgres, PostgresClient } from '../pool.ts';
import { createSecretBox } from '../secret-box.ts';
import { type Application, ConfigurationConflict, type GeneratedKey } from './application.ts';
import { applyModels, applyProvider, applyRoutingPolicy } from './apply-catalog.ts';
import { applyOrganization } from './apply-organization.ts';
import { auditApplication, readOrganizationStates } from './audit-application.ts';

export interface AppliedConfiguration {
  /** New keys that the file names without a secret; they are shown now and never again. */
  readonly generatedKeys: readonly GeneratedKey[];
  readonly catalogVersion: number;
  readonly catalogChanged: boolean;
}

/**
 * Throws a ConfigurationConflict (application.ts) and changes nothing when the file contradicts what was applied
 * before.
 */
export async function applyConfiguration(
  postgres: Postgres,
  configuration: Configuration,
  secrets: { readonly masterKey: Buffer },
): Promise<AppliedConfiguration> {
  const box = createSecretBox(secrets.masterKey);
  const pepper = derivePepper(secrets.masterKey);
  return postgres.transaction(async (client) => {
    // Applications take this lock one after the other; readers are not blocked.
    await client.query('SELECT version FROM catalog_version FOR UPDATE');
    const application: Application = {
      client,
      box,
      pepper,
      catalogChanged: false,
      changedIds: [],
      generatedKeys: [],
    };
    const slugs = configuration.organizations.map(({ slug }) => slug);
    const before = await readOrganizationStates(client, slugs);
    // The constraint "an organization has an owner" is checked at the end, since the file may name the next owner after
    // the last one.
    await client.query('SET CONSTRAINTS ALL DEFERRED');
    for (const provider of configuration.providers) await applyProvider(application, provider);
    await applyModels(application, configuration.models);
    for (const policy of configuration.routingPolicies) await applyRoutingPolicy(application, policy);
    for (const organization of configuration.organizations) await applyOrganization(application, organization);
    await checkOwners(client);
    await auditApplication(client, before, await readOrganizationStates(client, slugs));

    const { rows } = await client.query<{ version: string }>(
      'UPDATE catalog_version SET version = version + $1 RETURNING version',
      [application.catalogChanged ? 1 : 0],
    );
    if (application.catalogChanged) await notifyCatalogChanged(client);
    await notifyPrincipalsChanged(client, application.changedIds);
    return {
      generatedKeys: application.generatedKeys,
      catalogVersion: Number(rows[0]?.version),
      catalogChanged: application.catalogChanged,
    };
  });
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
