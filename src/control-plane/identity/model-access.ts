// Which models an organization, a team or a key may use; a request needs all three to agree.

import { z } from 'zod';
import type { ModelAccess, ModelAccessScope } from '../../domain/identity/model-access.ts';
import { type Operation, operation } from '../operation.ts';
import { actorOf, idOf, type Tenancy } from './asked-of.ts';
import { modelNameField } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { answerOf, shownOrRefused } from './outcome.ts';

const MODELS_MAX = 1_000;

const shown = z.object({ allowed_models: z.array(z.string()).nullable() }).meta({ id: 'ModelAccess', description: 'null: every model.' });

function show({ allowedModels }: ModelAccess): z.output<typeof shown> {
  return { allowed_models: allowedModels === null ? null : [...allowedModels] };
}

/** Whose allow-list a route is about; a key's is a field of the key. */
interface Bearer {
  readonly name: string;
  readonly words: string;
  readonly scope: (organizationId: string, ids: Readonly<Record<string, string>>) => ModelAccessScope;
}

export const ORGANIZATION_MODELS: Bearer = {
  name: 'ModelAccess',
  words: 'the organization',
  scope: (organizationId) => ({ kind: 'organization', organizationId }),
};
export const TEAM_MODELS: Bearer = {
  name: 'TeamModelAccess',
  words: 'the team',
  scope: (organizationId, ids) => ({ kind: 'team', organizationId, teamId: idOf(ids, 'teamId') }),
};

export function getModelAccess(store: IdentityStore, tenancy: Tenancy, bearer: Bearer): Operation {
  return operation({
    id: `get${bearer.name}${tenancy.suffix}`,
    summary: `Shows which models ${bearer.words} may use.`,
    answer: answerOf(shown),
    run: async (asked) => shownOrRefused(await store.getModelAccess(bearer.scope(tenancy.organizationId(asked), asked.ids)), show),
  });
}

export function setModelAccess(store: IdentityStore, tenancy: Tenancy, bearer: Bearer): Operation {
  return operation({
    id: `set${bearer.name}${tenancy.suffix}`,
    summary: `Sets which models ${bearer.words} may use; null for every model.`,
    body: z.strictObject({ allowed_models: z.array(modelNameField).max(MODELS_MAX, `must be at most ${MODELS_MAX} models`).nullable() }),
    answer: answerOf(shown),
    run: async (asked) => {
      const scope = bearer.scope(tenancy.organizationId(asked), asked.ids);
      return shownOrRefused(await store.setModelAccess(actorOf(asked.principal), scope, asked.body.allowed_models), show);
    },
  });
}
