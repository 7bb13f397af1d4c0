// The people who administer the whole installation, beside the holder of ADMIN_TOKEN.

import { z } from 'zod';
import type { PlatformAdministrator } from '../../domain/identity/platform-administrator.ts';
import { answerOf, pageOf, pageOrRefused, removedAnswer, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { emailField, pageQuery, showMoment, shownId, shownMoment } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import { actorOf, idOf } from './tenancy.ts';

const shown = z
  .object({ user_id: shownId, email: z.string(), created_at: shownMoment })
  .meta({ id: 'PlatformAdministrator' });

function show({ userId, email, createdAtMs }: PlatformAdministrator): z.output<typeof shown> {
  return { user_id: userId, email, created_at: showMoment(createdAtMs) };
}

export function listPlatformAdministrators(store: IdentityStore): Operation {
  return operation({
    id: 'listPlatformAdministrators',
    summary: 'Lists the platform administrators.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async ({ query }) => pageOrRefused(await store.listPlatformAdministrators(query), show),
  });
}

export function addPlatformAdministrator(store: IdentityStore): Operation {
  return operation({
    id: 'addPlatformAdministrator',
    summary: 'Makes a person a platform administrator, by e-mail address.',
    body: z.strictObject({ email: emailField }),
    answer: answerOf(shown),
    status: 201,
    run: async ({ principal, body }) =>
      shownOrRefused(await store.addPlatformAdministrator(actorOf(principal), body.email), show),
  });
}

export function removePlatformAdministrator(store: IdentityStore): Operation {
  return operation({
    id: 'removePlatformAdministrator',
    summary: 'Makes a person no platform administrator any more.',
    answer: removedAnswer,
    run: async ({ principal, ids }) =>
      shownOrRefused(
        await store.removePlatformAdministrator(actorOf(principal), idOf(ids, 'userId')),
        ({ removed }) => ({ removed }),
      ),
  });
}
