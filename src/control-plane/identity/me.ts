// GET /v1/me: the principal of the presented credential and its permissions.

import { z } from 'zod';
import type { Principal } from '../../domain/identity/principal.ts';
import { answerOf } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { roleField, showMomentOrNull, shownId, shownMoment } from './fields.ts';

const shown = z
  .object({
    credential: z.enum(['key', 'token', 'session']),
    credential_id: z.string(),
    user_id: shownId.nullable(),
    organization_id: shownId.nullable(),
    team_id: shownId.nullable(),
    permissions: z.array(z.string()),
    teams: z.array(z.object({ team_id: shownId, role: roleField })),
    platform_admin: z.boolean(),
    allowed_models: z.array(z.string()).nullable(),
    expires_at: shownMoment.nullable(),
  })
  .meta({ id: 'Me' });

function show(principal: Principal): z.output<typeof shown> {
  return {
    credential: principal.credential,
    credential_id: principal.apiKeyId,
    user_id: principal.userId,
    organization_id: principal.organizationId,
    team_id: principal.teamId,
    permissions: [...principal.permissions],
    teams: [...principal.teamPermissions].map(([team_id, role]) => ({ team_id, role })),
    platform_admin: principal.platformAdmin,
    allowed_models: principal.allowedModels === null ? null : [...principal.allowedModels],
    expires_at: showMomentOrNull(principal.expiresAtMs),
  };
}

export function getMe(): Operation {
  return operation({
    id: 'getMe',
    summary: 'Shows who the presented credential stands for and what it may do.',
    answer: answerOf(shown),
    run: ({ principal }) => Promise.resolve({ data: show(principal) }),
  });
}
