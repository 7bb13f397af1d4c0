// Provides the dry run of auto routing to the control plane: looks up the organization and the policy. The data plane
// does the rest.

import type { PreviewParams, PreviewRoute } from '../../control-plane/routing/preview.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { policyOf } from '../../domain/routing/policy-definition.ts';
import type { RoutingPolicy } from '../../domain/routing/routing-policy.ts';
import type { ServingCatalog } from '../../generation/catalog/serving-catalog.ts';
import type { RoutePreviewer } from '../../generation/routing/preview-route.ts';
import { invalid, NOT_FOUND } from '../../storage/postgres/identity/change.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { findOrganizationCaller } from '../../storage/postgres/routing/organization-caller.ts';
import { refuseDraft } from '../../storage/postgres/routing/policies.ts';

/** The name of an unpublished policy in records. */
const DRAFT = 'draft';

interface PreviewParts {
  readonly postgres: Postgres;
  readonly previewer: RoutePreviewer;
  readonly catalog: () => ServingCatalog;
}

export function createRoutePreview({ postgres, previewer, catalog: present }: PreviewParts): PreviewRoute {
  return async (params) => {
    const caller = await findOrganizationCaller(postgres, params.organizationId);
    if (caller === null) return NOT_FOUND;
    const catalog = present();
    const policy = await findPolicy(postgres, catalog, params);
    if ('refused' in policy) return policy;
    const { api, body, headers } = params;
    return previewer.preview({ caller, api, body, header: (name) => headers.get(name) ?? null, policy, catalog });
  };
}

async function findPolicy(
  postgres: Postgres,
  { routing }: ServingCatalog,
  { organizationId, policy }: PreviewParams,
): Promise<RoutingPolicy | Refused> {
  if (policy !== null && typeof policy !== 'string')
    return (await refuseDraft(postgres, policy, organizationId)) ?? policyOf(DRAFT, 0, policy);
  const name = policy ?? routing.policyOf.get(organizationId);
  if (name === undefined) return invalid('policy', 'must be given: auto routing is off for the organization');
  return (
    routing.policies.get(name) ??
    invalid('policy', `must be the name of a routing policy: there is no ${JSON.stringify(name)}`)
  );
}
