// Which guardrail policies screen an organization, its teams and its keys.

import { z } from 'zod';
import { entriesAtMost } from '../../domain/configuration/schema/entries-at-most.ts';
import { slugSchema } from '../../domain/configuration/schema/name-schemas.ts';
import type { AssignedGuardrails, GuardrailAssignments } from '../../domain/guardrails/stored-policy.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { idField } from '../identity/fields.ts';
import { actorOf, type Tenancy } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { GuardrailStore } from './guardrail-store.ts';

/** The limit of teams, and of keys, that a request names. */
const NAMED_MAX = 1_000;

const policyNames = z.array(slugSchema).max(16, 'must be at most 16 policies');
const onUnavailable = z
  .enum(['refuse', 'pass'])
  .meta({ description: 'What happens to requests while a changed policy cannot be loaded.' });
const assigned = z.object({
  policies: policyNames.meta({ description: 'Policies for the organization as a whole.' }),
  teams: z
    .record(z.string(), policyNames)
    .meta({ description: 'Policies by the slug of a team; added to the organization’s.' }),
  keys: z.record(z.string(), policyNames).meta({ description: 'Policies by the id of a key; added to the others.' }),
});
const except = z
  .object({ teams: z.array(slugSchema).max(NAMED_MAX), keys: z.array(idField).max(NAMED_MAX) })
  .meta({ description: 'Teams and keys that the organization leaves out of what it assigned to itself as a whole.' });
const shown = z.object({
  on_unavailable: onUnavailable,
  floor: policyNames.meta({ description: 'The platform’s policies by which everybody is screened.' }),
  platform: assigned.meta({ description: 'What the platform assigned; the organization cannot take it away.' }),
  organization: assigned.meta({ description: 'What the organization’s administrators assigned.' }),
  except,
});
const changed = z.strictObject({
  on_unavailable: onUnavailable.optional(),
  policies: policyNames.optional(),
  teams: entriesAtMost(NAMED_MAX, z.record(slugSchema, policyNames), 'teams').optional(),
  keys: entriesAtMost(NAMED_MAX, z.record(idField, policyNames), 'keys').optional(),
});

function show({ onUnavailable: choice, floor, platform, organization, except: left }: GuardrailAssignments) {
  return {
    on_unavailable: choice,
    floor: [...floor],
    platform: showAssigned(platform),
    organization: showAssigned(organization),
    except: { teams: [...left.teams], keys: [...left.keys] },
  };
}

function showAssigned({ policies, teams, keys }: AssignedGuardrails): z.output<typeof assigned> {
  const copy = (lists: Readonly<Record<string, readonly string[]>>) =>
    Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, [...list]]));
  return { policies: [...policies], teams: copy(teams), keys: copy(keys) };
}

export function getAssignments(store: GuardrailStore, tenancy: Tenancy): Operation {
  return operation({
    id: `getGuardrailAssignments${tenancy.suffix}`,
    summary: 'Shows which guardrail policies screen an organization, its teams and its keys.',
    answer: answerOf(shown),
    run: async (input) => shownOrRefused(await store.getAssignments(tenancy.organizationId(input)), show),
  });
}

/** What is left out stays as it is. Lower scopes only add to what higher ones have. */
export function setAssignments(store: GuardrailStore, tenancy: Tenancy): Operation {
  const { setBy } = tenancy;
  return operation({
    id: `setGuardrailAssignments${tenancy.suffix}`,
    summary: 'Assigns guardrail policies to an organization, its teams and its keys. What is left out stays as it is.',
    body: setBy === 'platform' ? changed : changed.extend({ except: except.optional() }),
    answer: answerOf(shown),
    run: async (input) => {
      const { on_unavailable: choice, policies, teams, keys } = input.body;
      const left = 'except' in input.body ? (input.body.except as z.output<typeof except> | undefined) : undefined;
      const params = { setBy, onUnavailable: choice, policies, teams, keys, except: left };
      const organizationId = tenancy.organizationId(input);
      return shownOrRefused(await store.setAssignments(actorOf(input.principal), organizationId, params), show);
    },
  });
}
