// The session of the console: whom it stands for and where it works, the change of its organization, and its end.

import { z } from 'zod';
import type { Principal } from '../../domain/identity/principal.ts';
import { virtualModelOf } from '../../domain/routing/virtual-model.ts';
import type { Exchange } from '../../http/exchange.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { idField, roleField, showMomentOrNull, shownId, shownMoment } from '../identity/fields.ts';
import type { IdentityStore } from '../identity/identity-store.ts';
import { actorOf } from '../identity/tenancy.ts';
import { type Authorize, type Operation, type OperationDescription, operation } from '../operation.ts';
import type { ConsoleParts } from './console-parts.ts';

export const shownSession = z
  .object({
    credential: z.enum(['key', 'token', 'session']),
    user: z
      .object({ id: shownId, email: z.string() })
      .nullable()
      .meta({ description: 'null: a platform administrator who is no person, such as the holder of ADMIN_TOKEN.' }),
    organization: z
      .object({ id: shownId, slug: z.string(), display_name: z.string(), role: roleField.nullable() })
      .nullable()
      .meta({
        description: 'Where the session works. Its role is null for a platform administrator who is no member.',
      }),
    permissions: z.array(z.string()),
    teams: z.array(z.object({ team_id: shownId, role: roleField })),
    platform_admin: z.boolean(),
    brand: z.string(),
    auto_model: z.string().meta({ description: 'The name under which auto routing is asked for.' }),
    time_zone: z.string().meta({ description: 'The time zone of reports that name none.' }),
    expires_at: shownMoment.nullable(),
  })
  .meta({ id: 'ConsoleSession' });

export async function showSession(
  { store, brand }: ConsoleParts,
  principal: Principal,
): Promise<z.output<typeof shownSession>> {
  const { userId, organizationId } = principal;
  const { email, organization } = await store.nameSession({ userId, organizationId });
  return {
    credential: principal.credential,
    user: userId === null || email === null ? null : { id: userId, email },
    organization:
      organization === null
        ? null
        : {
            id: organization.id,
            slug: organization.slug,
            display_name: organization.displayName,
            role: organization.role,
          },
    permissions: [...principal.permissions],
    teams: [...principal.teamPermissions].map(([team_id, role]) => ({ team_id, role })),
    platform_admin: principal.platformAdmin,
    brand,
    auto_model: virtualModelOf(brand).id,
    time_zone: 'UTC',
    expires_at: showMomentOrNull(principal.expiresAtMs),
  };
}

export function getSession(parts: () => ConsoleParts): Operation {
  return operation({
    id: 'getConsoleSession',
    summary: 'Shows whom the console’s session stands for, in which organization, and what it may do.',
    answer: answerOf(shownSession),
    run: async ({ principal }) => ({ data: await showSession(parts(), principal) }),
  });
}

export function changeSession(identity: IdentityStore): Operation {
  return operation({
    id: 'changeConsoleSession',
    summary: 'Chooses the organization that the console’s session works in; null for none.',
    body: z.strictObject({ organization_id: idField.nullable() }),
    answer: answerOf(z.object({ organization_id: shownId.nullable() })),
    run: async ({ principal, body }) => {
      if (principal.credential !== 'session') return NO_SESSION;
      const session = { tokenId: principal.apiKeyId, userId: principal.userId };
      const changed = await identity.setActiveOrganization(actorOf(principal), session, body.organization_id);
      return shownOrRefused(changed, ({ activeOrganizationId }) => ({ organization_id: activeOrganizationId }));
    },
  });
}

const NO_SESSION = { kind: 'conflict', reason: 'the request was not made with a session of the console' } as const;

/** Headers of an answer that sets the session's cookie or takes it away. */
export const COOKIE_HEADERS = {
  'Set-Cookie': z.string().meta({ description: 'The session of the console.' }),
};

export const END_SESSION: OperationDescription = {
  id: 'endConsoleSession',
  summary: 'Signs out: the console’s session ends on every gateway.',
  query: null,
  body: null,
  answer: answerOf(z.object({ ended: z.literal(true) })),
  answerHeaders: COOKIE_HEADERS,
  status: 200,
};

export async function endSession(
  { store, sessions }: ConsoleParts,
  exchange: Exchange,
  authorize: Authorize,
): Promise<void> {
  const principal = await authorize();
  if ('kind' in principal) return exchange.refuse(principal);
  if (principal.credential !== 'session') return exchange.refuse(NO_SESSION);
  await store.endSession(principal.apiKeyId);
  const headers = ['content-type', 'application/json', 'set-cookie', sessions.cookie.clear()];
  exchange.answer(200, headers, '{"data":{"ended":true}}');
}
