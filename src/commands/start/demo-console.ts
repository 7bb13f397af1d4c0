// Makes the link that opens the demo's console as the owner of the demo's organization, who also administers the
// installation.

import { isRefused } from '../../domain/refusals/refused.ts';
import { findMemberByEmail } from '../../storage/postgres/identity/members.ts';
import { findOrganizationBySlug } from '../../storage/postgres/identity/organizations.ts';
import { addPlatformAdministrator } from '../../storage/postgres/identity/platform-administrators.ts';
import { createLink } from '../../storage/postgres/identity/sessions.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

export const DEMO_ORGANIZATION = 'demo';
const DEMO_OWNER = 'owner@demo.test';
const DEMO_ACTOR = { kind: 'cli', userId: null, label: 'tollgate start (demo)' } as const;

/** Returns the code of the link; null: the demo's people were removed. */
export async function openDemoConsole(postgres: Postgres, secrets: InstallationSecrets): Promise<string | null> {
  const organization = await findOrganizationBySlug(postgres, DEMO_ORGANIZATION);
  if (isRefused(organization)) return null;
  const owner = await findMemberByEmail(postgres, { organizationId: organization.id, teamId: null }, DEMO_OWNER);
  if (isRefused(owner)) return null;
  // Refused if the owner is an administrator already.
  await addPlatformAdministrator(postgres, DEMO_ACTOR, DEMO_OWNER);
  const { code } = await createLink(postgres, secrets, DEMO_ACTOR, {
    userId: owner.userId,
    organizationId: organization.id,
  });
  return code;
}
