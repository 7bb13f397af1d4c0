// The model lists in the rows of organizations, teams and keys: the platform's list, the organization's list, and the
// models that both allow.

import type { AllowedModels, ModelAccess } from '../../../domain/identity/model-access.ts';

/** allowed_models is a generated column: what both lists allow. */
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
