// Usage limits of an organization, or of a team, member or key in it. The platform and the organization each read all
// of them and replace their own as a whole.

import { z } from 'zod';
import type { UsageLimit } from '../../domain/configuration/configuration.ts';
import type { Limits } from '../../domain/identity/limits.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { parseUsd } from '../../domain/money/parse-usd.ts';
import type { PicoUsd } from '../../domain/money/pico-usd.ts';
import { BUDGET_WINDOWS, COUNTED_KINDS } from '../../domain/quotas/limit-kinds.ts';
import { assert } from '../../platform/assert.ts';
import { answerOf, shownOrRefused } from '../answers.ts';
import { type Operation, operation } from '../operation.ts';
import { setByField } from './fields.ts';
import type { IdentityStore } from './identity-store.ts';
import type { RouteScope } from './route-scopes.ts';
import { actorOf, type Tenancy } from './tenancy.ts';

const LIMITS_MAX = 20;

const usd = z.string().refine((text) => parseUsd(text) !== null, 'must be USD as a decimal string, such as "25.00"');

const count = z.strictObject({
  kind: z.enum(COUNTED_KINDS),
  limit: z.int('must be a whole number').min(0, 'must not be negative'),
  model: z.exactOptional(z.string()),
});
const budget = z.strictObject({
  kind: z.literal('budget'),
  window: z.enum(BUDGET_WINDOWS),
  limit: usd,
  model: z.exactOptional(z.string()),
});
const WORDS =
  'A budget is USD as a decimal string; the others are whole numbers. With `model`, a public id, it ' +
  'holds for that model only.';
const limit = z.discriminatedUnion('kind', [count, budget]).meta({ id: 'UsageLimitOrder', description: WORDS });
const shownLimit = z
  .discriminatedUnion('kind', [count.extend({ set_by: setByField }), budget.extend({ set_by: setByField })])
  .meta({
    id: 'UsageLimit',
    description: `${WORDS} The platform’s and the organization’s both hold, so the tighter one binds.`,
  });
const shown = z.object({ limits: z.array(shownLimit) });

function show({ items }: Limits): z.output<typeof shown> {
  return {
    limits: items.map(({ setBy, ...item }) =>
      item.kind === 'budget'
        ? { ...item, limit: formatUsdString(item.limit), set_by: setBy }
        : { ...item, limit: Number(item.limit), set_by: setBy },
    ),
  };
}

function read(wanted: z.output<typeof limit>): UsageLimit {
  return wanted.kind === 'budget'
    ? { ...wanted, limit: amountOf(wanted.limit) }
    : { ...wanted, limit: BigInt(wanted.limit) };
}

function amountOf(text: string): PicoUsd {
  const amount = parseUsd(text);
  assert(amount !== null, 'the schema has parsed this amount before');
  return amount;
}

export function getLimits(store: IdentityStore, tenancy: Tenancy, routeScope: RouteScope): Operation {
  return operation({
    id: `get${routeScope.prefix}Limits${tenancy.suffix}`,
    summary: `Shows the ceilings on use of ${routeScope.words}: the platform’s, and the organization’s own.`,
    answer: answerOf(shown),
    run: async (input) =>
      shownOrRefused(await store.listLimits(routeScope.of(tenancy.organizationId(input), input.ids)), show),
  });
}

export function replaceLimits(store: IdentityStore, tenancy: Tenancy, routeScope: RouteScope): Operation {
  return operation({
    id: `replace${routeScope.prefix}Limits${tenancy.suffix}`,
    summary:
      `Replaces the ceilings on use of ${routeScope.words} that the ${tenancy.setBy} sets; the others stay, ` +
      `and hold too.`,
    body: z.strictObject({ limits: z.array(limit).max(LIMITS_MAX, `must be at most ${LIMITS_MAX} limits`) }),
    answer: answerOf(shown),
    run: async (input) => {
      const scope = routeScope.of(tenancy.organizationId(input), input.ids);
      return shownOrRefused(
        await store.replaceLimits(actorOf(input.principal), scope, {
          setBy: tenancy.setBy,
          limits: input.body.limits.map(read),
        }),
        show,
      );
    },
  });
}
