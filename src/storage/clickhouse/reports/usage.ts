// Usage in a stretch of time: in total and by model, and by day.

import { formatUsdString } from '../../../domain/money/format.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { picoOf } from '../decimal-text.ts';
import { IS_ERROR, SPEND } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { compareText } from './routing-conversations.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';
import { slotSeconds, TimeBuckets } from './time-buckets.ts';

export interface Usage {
  readonly requests: number;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  /** Dollars. */
  readonly cost: string;
}

export interface UsageSummary extends Usage {
  readonly currency: 'USD';
  readonly by_model: readonly (Usage & { readonly model: string })[];
}

export interface UsageDay extends Usage {
  /** The date in the window's time zone. */
  readonly date: string;
  readonly errors: number;
}

/** Unknown counts add nothing. */
const USAGE_COLUMNS = `count() AS requests, countIf(${IS_ERROR}) AS errors, sum(ifNull(tokens_prompt, 0)) AS prompt,
  sum(ifNull(tokens_completion, 0)) AS completion,
  toString(sum(ifNull(${SPEND}, 0))) AS cost`;

interface UsageRow {
  readonly requests: number;
  readonly errors: number;
  readonly prompt: number;
  readonly completion: number;
  readonly cost: string;
}

export async function usageSummary(client: ClickHouseReader, params: ReportParams): Promise<UsageSummary> {
  const rows = await selectReport<UsageRow & { readonly served: string }>(
    client,
    `SELECT toString(model) AS served, ${USAGE_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY served
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const sum = new UsageSum();
  for (const row of rows) sum.add(row);
  return {
    currency: 'USD',
    ...sum.usage(),
    by_model: rows
      .toSorted((a, b) => b.requests - a.requests || compareText(a.served, b.served))
      .map(({ served, requests, prompt, completion, cost }) => ({
        model: served,
        requests,
        tokens_prompt: prompt,
        tokens_completion: completion,
        cost,
      })),
  };
}

/** Days with requests, first to last, whatever the window's granularity. */
export async function usageDaily(client: ClickHouseReader, params: ReportParams): Promise<UsageDay[]> {
  const days = { timeZone: params.window.timeZone, granularity: 'day' } as const;
  const rows = await selectReport<UsageRow & { readonly slot: number }>(
    client,
    `SELECT intDiv(toUnixTimestamp(admitted_at), {slot_seconds:UInt32}) AS slot, ${USAGE_COLUMNS}
     FROM request_facts FINAL
     WHERE ${checkedConditions(params)}
     GROUP BY slot
     ORDER BY slot
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(params), slot_seconds: slotSeconds(days) },
  );
  const buckets = new TimeBuckets(days);
  const slotMs = slotSeconds(days) * 1000;
  const sums = new Map<string, UsageSum>();
  for (const row of rows) {
    const { date } = buckets.bucketAt(row.slot * slotMs);
    const sum = sums.get(date) ?? new UsageSum();
    sums.set(date, sum);
    sum.add(row);
  }
  return [...sums].map(([date, sum]) => ({ date, errors: sum.errors, ...sum.usage() }));
}

class UsageSum {
  errors = 0;
  #requests = 0;
  #prompt = 0;
  #completion = 0;
  #cost = 0n;

  add(row: UsageRow): void {
    this.#requests += row.requests;
    this.errors += row.errors;
    this.#prompt += row.prompt;
    this.#completion += row.completion;
    this.#cost += picoOf(row.cost);
  }

  usage(): Usage {
    return {
      requests: this.#requests,
      tokens_prompt: this.#prompt,
      tokens_completion: this.#completion,
      cost: formatUsdString(this.#cost),
    };
  }
}
