// What an organization's own provider keys were used for, key by key.

import { z } from 'zod';
import { formatUsdString } from '../../domain/money/format.ts';
import type { OwnKeyUsage } from '../../domain/own-keys/own-key-usage.ts';
import { addDays, CalendarDays, daysBetween } from '../../domain/reports/calendar-days.ts';
import { timeZoneField } from '../../domain/reports/report-query.ts';
import { shownOrRefused } from '../answers.ts';
import { showMomentOrNull, shownId, shownMoment } from '../identity/fields.ts';
import { ACTIVE } from '../identity/tenancy.ts';
import { tokenSumSchema } from '../openapi/token-sum-schema.ts';
import { type Operation, operation } from '../operation.ts';
import type { OwnKeysStore } from './own-keys-store.ts';

const DAYS_DEFAULT = 30;
const DAYS_MAX = 366;

const shown = z
  .object({
    credential_id: shownId,
    credential_name: z.string(),
    kind: z.string(),
    requests: z.int(),
    tokens_prompt: tokenSumSchema,
    tokens_completion: tokenSumSchema,
    rated_cost: z.string().meta({ description: 'Dollars: what the usage is rated at. The provider charges it.' }),
    fee: z.string().meta({ description: 'Dollars: what the platform charged.' }),
    last_used_at: shownMoment.nullable(),
  })
  .meta({ id: 'ByokUsage' });

function show(usage: OwnKeyUsage): z.output<typeof shown> {
  return {
    credential_id: usage.keyId,
    credential_name: usage.name,
    kind: usage.kind,
    requests: usage.requests,
    tokens_prompt: usage.inputTokens,
    tokens_completion: usage.outputTokens,
    rated_cost: formatUsdString(usage.ratedCost),
    fee: formatUsdString(usage.charged),
    last_used_at: showMomentOrNull(usage.lastUsedAtMs),
  };
}

const day = z.iso.date('must be a date, such as 2026-11-24').optional();

export function getByokUsage(store: OwnKeysStore): Operation {
  return operation({
    id: 'getByokUsage',
    summary: 'Says what each of the organization’s own provider keys was used for; the last 30 days unless it says.',
    query: z.object({
      start_date: day.meta({ description: 'The first day. Without it: 30 days that end with the last one.' }),
      end_date: day.meta({ description: 'The last day. Without it: today.' }),
      ...timeZoneField,
    }),
    answer: z.object({ data: z.array(shown) }),
    run: async (input) => {
      const days = new CalendarDays(input.query.time_zone);
      const { end_date: end = days.dateAt(store.nowMs()) } = input.query;
      const { start_date: start = addDays(end, 1 - DAYS_DEFAULT) } = input.query;
      const length = daysBetween(start, end) + 1;
      if (length < 1) return { kind: 'invalid_field', field: 'start_date', reason: 'it must not be after end_date' };
      if (length > DAYS_MAX)
        return {
          kind: 'invalid_field',
          field: 'start_date',
          reason: `it must be at most ${DAYS_MAX} days before the end`,
        };
      const params = {
        organizationId: ACTIVE.organizationId(input),
        fromMs: days.startOf(start),
        untilMs: days.startOf(addDays(end, 1)),
      };
      return shownOrRefused(await store.readUsage(params), (usage) => usage.map(show));
    },
  });
}
