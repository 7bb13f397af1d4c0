// GET /v1/usage/limits/current: the present state of the limits that hold for the principal (spec 4.4).

import { z } from 'zod';
import type { CurrentLimit } from '../../domain/identity/current-limit.ts';
import { formatUsdString } from '../../domain/money/format.ts';
import { BUDGET_WINDOWS, LIMIT_KINDS } from '../../domain/quotas/limit-kinds.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import { setByField, showMomentOrNull, shownMoment } from '../identity/fields.ts';
import type { RouteScope } from '../identity/route-scopes.ts';
import type { Tenancy } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';
import type { BillingStore } from './billing-store.ts';

const quantity = z.union([z.int(), z.string()]);
/** A limit as it is shown here and in the refusal that it causes. */
export const limitFields = {
  scope: z.enum(['organization', 'team', 'user', 'key']),
  set_by: setByField,
  kind: z.enum(LIMIT_KINDS),
  window: z.enum(BUDGET_WINDOWS).nullable(),
  limit: quantity,
  model: z.string().nullable(),
};
const shown = z
  .object({
    ...limitFields,
    used: quantity,
    lent: quantity.meta({
      description:
        'What gateways hold for open requests and those to come. Of a budget it is not in `used` yet, and so still ' +
        'in `remaining`; of a rate it is a part of `used`, for up to 17 seconds. Always 0 of concurrent requests.',
    }),
    remaining: quantity,
    resets_at: shownMoment.nullable(),
  })
  .meta({
    id: 'CurrentLimit',
    description:
      'A budget’s quantities are USD as decimal strings, the others whole numbers. `used` of concurrent requests is ' +
      'what gateways had recorded a moment ago. That of requests and tokens per minute is with what is `lent`. ' +
      '`model`: the limit holds for it alone.',
  });

function show({
  scope,
  setBy,
  kind,
  window,
  amount,
  used,
  lent,
  remaining,
  resetsAtMs,
  model,
}: CurrentLimit): z.output<typeof shown> {
  const quantityOf = (value: bigint) => (kind === 'budget' ? formatUsdString(value) : Number(value));
  return {
    scope,
    set_by: setBy,
    kind,
    window,
    limit: quantityOf(amount),
    used: quantityOf(used),
    lent: quantityOf(lent),
    remaining: quantityOf(remaining),
    resets_at: showMomentOrNull(resetsAtMs),
    model,
  };
}

/** For administrators: the limits that are set on one scope, and how they stand. */
export function getCurrentLimitsOf(store: BillingStore, tenancy: Tenancy, routeScope: RouteScope): Operation {
  return operation({
    id: `getStanding${routeScope.prefix}Limits${tenancy.suffix}`,
    summary: `Shows how the ceilings on ${routeScope.words} stand: what is used, what gateways hold, and what is left.`,
    answer: z.object({ data: z.array(shown) }),
    run: async ({ principal, ids }) => {
      const scope = routeScope.of(tenancy.organizationId({ principal, ids }), ids);
      const found = await store.readCurrentLimitsOf(scope);
      if (isRefused(found)) return { kind: 'not_found' };
      return { data: found.map(show) };
    },
  });
}

export function getCurrentLimits(store: BillingStore): Operation {
  return operation({
    id: 'getCurrentLimits',
    summary: 'Shows how the ceilings on the caller’s use stand: those of a key, its user, team and organization.',
    answer: z.object({ data: z.array(shown) }),
    run: async ({ principal }) => {
      const { credential, organizationId, userId, limits } = principal;
      if (organizationId === null) return { kind: 'scope_required' };
      return { data: (await store.readCurrentLimits({ credential, organizationId, userId, limits })).map(show) };
    },
  });
}
