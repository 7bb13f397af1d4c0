// Ceilings on use of an organization, or of a team, member or key in it: read, and replaced as a whole.

import { z } from 'zod';
import type { UsageLimit } from '../../domain/configuration/configuration.ts';
import type { LimitScope } from '../../domain/identity/limit-scope.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { parseUsd } from '../../domain/money/parse-usd.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import { assert } from '../../platform/assert.ts';
import { type Operation, operation } from '../operation.ts';
import { actorOf, idOf, type Tenancy } from './asked-of.ts';
import type { IdentityStore, Limits } from './identity-store.ts';
import { answerOf, shownOrRefused } from './outcome.ts';

const LIMITS_MAX = 20;

const countKind = z.enum(['requests_per_minute', 'tokens_per_minute', 'concurrent_requests']);
const budgetWindow = z.enum(['hour', 'day', 'week', 'month']);
const usd = z.string().refine((text) => parseUsd(text) !== null, 'must be USD as a decimal string, such as "25.00"');

const limit = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: countKind, limit: z.int('must be a whole number').min(0, 'must not be negative'), model: z.exactOptional(z.string()) }),
    z.strictObject({ kind: z.literal('budget'), window: budgetWindow, limit: usd, model: z.exactOptional(z.string()) }),
  ])
  .meta({
    id: 'UsageLimit',
    description: 'A budget is USD as a decimal string; the others are whole numbers. With `model`, a public id, it holds for that model only.',
  });
const shown = z.object({ limits: z.array(limit) });

function show({ items }: Limits): z.output<typeof shown> {
  return {
    limits: items.map((item) => (item.kind === 'budget' ? { ...item, limit: formatUsdString(item.limit) } : { ...item, limit: Number(item.limit) })),
  };
}

function read(wanted: z.output<typeof limit>): UsageLimit {
  return wanted.kind === 'budget' ? { ...wanted, limit: amountOf(wanted.limit) } : { ...wanted, limit: BigInt(wanted.limit) };
}

function amountOf(text: string): PicoUsd {
  const amount = parseUsd(text);
  assert(amount !== null, 'the schema has parsed this amount before');
  return amount;
}

/** Whose ceilings a route is about. */
interface Bearer {
  readonly name: string;
  readonly words: string;
  readonly scope: (organizationId: string, ids: Readonly<Record<string, string>>) => LimitScope;
}

export const ORGANIZATION_LIMITS: Bearer = {
  name: 'Limits',
  words: 'the organization',
  scope: (organizationId) => ({ kind: 'organization', organizationId }),
};
export const TEAM_LIMITS: Bearer = {
  name: 'TeamLimits',
  words: 'the team',
  scope: (organizationId, ids) => ({ kind: 'team', organizationId, teamId: idOf(ids, 'teamId') }),
};
export const MEMBER_LIMITS: Bearer = {
  name: 'MemberLimits',
  words: 'the member',
  scope: (organizationId, ids) => ({ kind: 'user', organizationId, userId: idOf(ids, 'userId') }),
};
export const KEY_LIMITS: Bearer = {
  name: 'KeyLimits',
  words: 'the key',
  scope: (organizationId, ids) => ({ kind: 'key', organizationId, keyId: idOf(ids, 'keyId') }),
};

export function getLimits(store: IdentityStore, tenancy: Tenancy, bearer: Bearer): Operation {
  return operation({
    id: `get${bearer.name}${tenancy.suffix}`,
    summary: `Shows the ceilings on use of ${bearer.words}.`,
    answer: answerOf(shown),
    run: async (asked) => shownOrRefused(await store.listLimits(bearer.scope(tenancy.organizationId(asked), asked.ids)), show),
  });
}

export function replaceLimits(store: IdentityStore, tenancy: Tenancy, bearer: Bearer): Operation {
  return operation({
    id: `replace${bearer.name}${tenancy.suffix}`,
    summary: `Replaces all ceilings on use of ${bearer.words}.`,
    body: z.strictObject({ limits: z.array(limit).max(LIMITS_MAX, `must be at most ${LIMITS_MAX} limits`) }),
    answer: answerOf(shown),
    run: async (asked) => {
      const scope = bearer.scope(tenancy.organizationId(asked), asked.ids);
      return shownOrRefused(await store.replaceLimits(actorOf(asked.principal), scope, asked.body.limits.map(read)), show);
    },
  });
}
