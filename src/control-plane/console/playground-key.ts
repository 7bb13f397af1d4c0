// POST /v1/console/playground-key: an inference key for the console's playground, since a session cannot generate.

import { z } from 'zod';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Key, KeyWithSecret } from '../../domain/identity/api-key.ts';
import type { Refused } from '../../domain/refusals/refused.ts';
import { assert } from '../../platform/assert.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { showMoment, shownId, shownMoment } from '../identity/fields.ts';
import { actorOf } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';

export type CreatePlaygroundKey = (
  actor: Actor,
  params: {
    readonly organizationId: string;
    readonly userId: string | null;
    readonly payer: Key['payer'];
    readonly isPlatformAdmin: boolean;
  },
) => Promise<KeyWithSecret | Refused>;

/** `create` gives null: the operator has switched the console off. */
export function createPlaygroundKey(create: () => CreatePlaygroundKey | null): Operation {
  return operation({
    id: 'createPlaygroundKey',
    summary:
      'Makes an inference key of the active organization that lives for 15 minutes. The organization pays for those ' +
      "of its administrators, each member's own wallet for theirs.",
    answer: answerOf(z.object({ id: shownId, key: z.string(), expires_at: shownMoment }).meta({ id: 'PlaygroundKey' })),
    status: 201,
    run: async ({ principal }) => {
      // An inference key makes no credentials.
      if (principal.credential === 'key') return { kind: 'permission_denied' };
      const make = create();
      if (make === null) return { kind: 'not_found' };
      const { organizationId, userId, permissions, platformAdmin: isPlatformAdmin } = principal;
      assert(organizationId !== null, 'the route table lets nobody without an active organization here');
      // As with every other key, only an administrator of the organization makes one that the organization pays for.
      const payer = permissions.includes('org.admin') ? 'organization' : 'user';
      const made = await make(actorOf(principal), { organizationId, userId, payer, isPlatformAdmin });
      return shownOrRefused(made, ({ id, secret, expiresAtMs }) => ({
        id,
        key: secret,
        expires_at: showMoment(expiresAtMs ?? 0),
      }));
    },
  });
}
