// What the control plane answers: an item or a page, or the refusal that a result of storage stands for (spec 7.8).

import { z } from 'zod';
import type { Page } from '../domain/lists/page.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import { isRefused, type Refused, snakeCase } from '../domain/refusals/refused.ts';

export function shownOrRefused<T extends object, S>(result: T | Refused, show: (value: T) => S): { data: S } | Refusal {
  return isRefused(result) ? refusalOf(result) : { data: show(result) };
}

export function pageOrRefused<T, S>(
  result: Page<T> | Refused,
  show: (item: T) => S,
): { data: S[]; next_cursor: string | null } | Refusal {
  return isRefused(result) ? refusalOf(result) : { data: result.items.map(show), next_cursor: result.nextCursor };
}

/** The answer of a listing of such items. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() });
}

export function answerOf<Item extends z.ZodType>(item: Item) {
  return z.object({ data: item });
}

/** The answer of an operation that removes an item. */
export const removedAnswer = answerOf(z.object({ removed: z.literal(true) }));

export function refusalOf({ refused, field, reason }: Refused): Refusal {
  switch (refused) {
    case 'conflict':
      return {
        kind: 'conflict',
        reason: `${field === undefined ? '' : `"${snakeCase(field)}" `}${reason ?? 'it conflicts with what is stored'}`,
      };
    case 'invalid':
      return { kind: 'invalid_field', field: snakeCase(field ?? 'body'), reason: `it ${reason ?? 'is not possible'}` };
    case 'not_found':
    case 'owner_floor':
    case 'permission_denied':
    case 'byok_disabled':
    case 'byok_kind_not_allowed':
    case 'byok_encryption_unconfigured':
      return { kind: refused };
  }
}
