// Which models an organization, a team or a key may use. Each has a list of the platform's and a list of the
// organization's, and a request must be allowed by all of them.

import { z } from 'zod';
import type { AllowedModels, ModelAccess, ModelAccessScope } from '../../domain/identity/model-access.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { modelNameField } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import type { RouteScope } from './route-scopes.ts';
import { actorOf, type Tenancy } from './tenancy.ts';

const MODELS_MAX = 1_000;

/** An allow-list of models as requests give it; null: every model. */
export const allowedModelsField = z
  .array(modelNameField)
  .max(MODELS_MAX, `must be at most ${MODELS_MAX} models`)
  .nullable();
const shownModels = z.array(z.string()).nullable();
/** Keys have these fields, too. */
export const shownAccess = {
  allowed_models: shownModels,
  allowed_models_set_by: z.object({ platform: shownModels, organization: shownModels }),
} as const;
const shown = z.object(shownAccess).meta({
  id: 'ModelAccess',
  description: '`allowed_models`: what the platform’s and the organization’s list both allow; null: every model.',
});

export function showAccess({
  allowedModels,
  allowedModelsSetBy: { platform, organization },
}: ModelAccess): z.output<typeof shown> {
  return {
    allowed_models: showModels(allowedModels),
    allowed_models_set_by: { platform: showModels(platform), organization: showModels(organization) },
  };
}

function showModels(models: AllowedModels): string[] | null {
  return models === null ? null : [...models];
}

export function getModelAccess(
  store: IdentityStore,
  tenancy: Tenancy,
  routeScope: RouteScope<ModelAccessScope>,
): Operation {
  return operation({
    id: `get${routeScope.prefix}ModelAccess${tenancy.suffix}`,
    summary: `Shows which models ${routeScope.words} may use, and who says so.`,
    answer: answerOf(shown),
    run: async (input) =>
      shownOrRefused(await store.getModelAccess(routeScope.of(tenancy.organizationId(input), input.ids)), showAccess),
  });
}

/** The organization's list of a key is a field of the key. */
export function setModelAccess(
  store: IdentityStore,
  tenancy: Tenancy,
  routeScope: RouteScope<ModelAccessScope>,
): Operation {
  return operation({
    id: `set${routeScope.prefix}ModelAccess${tenancy.suffix}`,
    summary:
      `Sets the ${tenancy.setBy}’s list of models that ${routeScope.words} may use; null for every model that ` +
      `the other list allows.`,
    body: z.strictObject({ allowed_models: allowedModelsField }),
    answer: answerOf(shown),
    run: async (input) => {
      const scope = routeScope.of(tenancy.organizationId(input), input.ids);
      return shownOrRefused(
        await store.setModelAccess(actorOf(input.principal), scope, {
          setBy: tenancy.setBy,
          models: input.body.allowed_models,
        }),
        showAccess,
      );
    },
  });
}
