// Routing policies, and which organization uses which. Only the platform administers them (spec 4.11).

import { z } from 'zod';
import { basedOn } from '../../domain/configuration/schema/catalog-schema.ts';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import { policyDefinition } from '../../domain/routing/policy-definition.ts';
import type {
  OrganizationRouting,
  PolicyHistory,
  PolicyVersion,
  StoredPolicy,
} from '../../domain/routing/stored-policy.ts';
import { answerOf, removedAnswer, shownOrRefused } from '../answers.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { basedOnQuery } from '../catalog/providers.ts';
import { showMoment, shownMoment } from '../identity/fields.ts';
import { actorOf, idOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { RoutingStore } from './routing-store.ts';

const shownVersion = z.object({ version: z.int(), created_at: shownMoment, definition: policyDefinition });
const shownPolicy = shownVersion.extend({
  name: z.string(),
  organizations: z.int().meta({ description: 'How many organizations route by it.' }),
});
const shownHistory = shownPolicy.extend({
  versions: z.array(shownVersion).meta({ description: 'Newest first, the present one included.' }),
});
const shownRouting = z.object({ policy: z.string().nullable().meta({ description: 'null: auto routing is off.' }) });

function showVersion({ version, createdAtMs, definition }: PolicyVersion): z.output<typeof shownVersion> {
  return { version, created_at: showMoment(createdAtMs), definition };
}

function showPolicy(policy: StoredPolicy): z.output<typeof shownPolicy> {
  return { name: policy.name, ...showVersion(policy), organizations: policy.organizations };
}

function showHistory(policy: PolicyHistory): z.output<typeof shownHistory> {
  return { ...showPolicy(policy), versions: policy.versions.map(showVersion) };
}

function showRouting({ policy }: OrganizationRouting): z.output<typeof shownRouting> {
  return { policy };
}

export function listPolicies(store: RoutingStore): Operation {
  return operation({
    id: 'listRoutingPolicies',
    summary: 'Lists the routing policies, each in its present version.',
    answer: z.object({ data: z.array(shownPolicy) }),
    run: async () => ({ data: (await store.listPolicies()).map(showPolicy) }),
  });
}

export function getPolicy(store: RoutingStore): Operation {
  return operation({
    id: 'getRoutingPolicy',
    summary: 'Shows a routing policy with its versions.',
    answer: answerOf(shownHistory),
    run: async ({ ids }) => shownOrRefused(await store.getPolicy(idOf(ids, 'policyName')), showHistory),
  });
}

export function putPolicy(store: RoutingStore): Operation {
  return operation({
    id: 'putRoutingPolicy',
    summary: 'Makes a routing policy, or its next version where it is different.',
    body: policyDefinition.extend({
      version: basedOn.meta({
        description: 'The version that was read. If it is not the present one, the answer is 409.',
      }),
    }),
    answer: answerOf(shownHistory),
    run: async ({ principal, ids, body: { version = null, ...definition } }) => {
      const policy = { name: idOf(ids, 'policyName'), definition, version };
      return shownOrRefused(await store.putPolicy(actorOf(principal), policy), showHistory);
    },
  });
}

export function removePolicy(store: CatalogStore): Operation {
  return operation({
    id: 'removeRoutingPolicy',
    summary: 'Removes a routing policy that no organization routes by.',
    query: basedOnQuery,
    answer: removedAnswer,
    run: async ({ principal, ids, query: { version = null } }) => {
      const target = { kind: 'routing_policy', id: idOf(ids, 'policyName'), version } as const;
      return shownOrRefused(await store.remove(actorOf(principal), target), (done) => done);
    },
  });
}

export function getOrganizationRouting(store: RoutingStore): Operation {
  return operation({
    id: 'getOrganizationRouting',
    summary: 'Shows the routing policy of an organization.',
    answer: answerOf(shownRouting),
    run: async ({ ids }) =>
      shownOrRefused(await store.getOrganizationRouting(idOf(ids, 'organizationId')), showRouting),
  });
}

export function setOrganizationRouting(store: RoutingStore): Operation {
  return operation({
    id: 'setOrganizationRouting',
    summary: 'Sets the routing policy of an organization; null switches auto routing off.',
    body: z.strictObject({ policy: slugSchema.nullable() }),
    answer: answerOf(shownRouting),
    run: async ({ principal, ids, body: { policy } }) =>
      shownOrRefused(
        await store.setOrganizationRouting(actorOf(principal), idOf(ids, 'organizationId'), policy),
        showRouting,
      ),
  });
}
