// The lists of models of organizations, teams and keys as their rows have them: the platform's, the organization's, and
// what both allow.

import type { AllowedModels, ModelAccess } from '../../../domain/identity/model-access.ts';

/** allowed_models is what both lists allow: the database makes it from them. */
export const MODEL_ACCESS_COLUMNS = 't.allowed_models, t.platform_allowed_models, t.organization_allowed_models';

export interface ModelAccessRow {
  readonly allowed_models: AllowedModels;
  readonly platform_allowed_models: AllowedModels;
  readonly organization_allowed_models: AllowedModels;
}

export function toModelAccess(row: ModelAccessRow): ModelAccess {
  return {
    allowedModels: row.allowed_models,
    allowedModelsSetBy: { platform: row.platform_allowed_models, organization: row.organization_allowed_models },
  };
}
