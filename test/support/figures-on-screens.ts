// Computes what the console's screens must show of a report, cell by cell.

import { bucketLabels, dollars, duration, moment, percent, spaced, whole } from '../../src/console/logic/format.ts';
import { REASONS } from '../../src/console/logic/route-words.ts';
import { nameOfGroup, nameOfOthers } from '../../src/console/logic/series-chart.ts';

// biome-ignore lint: an answer is looked into by many paths, and every figure of it is compared.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = Readonly<Record<string, any>>;

/** Rows of one figure may stand in any order. */
export function sorted(rows: readonly (readonly string[])[]): string[] {
  return rows.map((row) => row.join(' ')).toSorted();
}

/** A chart of a series as a table. `nothing`: the text of a bucket without requests. */
export function expectedChart(data: Json, valueOf: (point: Json) => string, nothing: string): string[][] {
  const labels = bucketLabels(data['buckets'], data['granularity']);
  const shown: Json[] = [...data['groups'], ...(data['remainder'] === null ? [] : [data['remainder']])];
  return (data['buckets'] as string[]).map((bucket, index) => [
    labels[index] ?? '',
    ...shown.map(({ series }) => {
      const point = (series as Json[]).find((one) => one['bucket'] === bucket);
      return point === undefined ? nothing : valueOf(point);
    }),
  ]);
}

export function expectedUsage({ groups, remainder, totals }: Json): string[][] {
  const row = (name: string, of: Json) => [
    name,
    whole(of['requests']),
    of['errors'] === 0 ? '0' : `${whole(of['errors'])} (${percent(of['errors'] / of['requests'])})`,
    whole(of['tokens_prompt']),
    whole(of['tokens_completion']),
    duration(of['p95_latency_ms']),
    dollars(of['cost']),
  ];
  return [
    ...groups.map((group: Json) => row(nameOfGroup(group), group)),
    ...(remainder === null ? [] : [row(nameOfOthers(remainder.groups), remainder)]),
    row('All', totals),
  ];
}

export function expectedRequest(row: Json, zone: string): string[] {
  return [
    moment(row['created_at'], zone),
    row['model'] ?? row['requested_model'] ?? 'none',
    [row['status'] ?? 'no reply', ...(row['error'] === null ? [] : [spaced(row['error'])])].join(' '),
    whole(row['tokens_prompt']),
    whole(row['tokens_completion']),
    row['billing_status'] === 'pending'
      ? 'pending'
      : row['cost'] === null && row['credential_source'] === 'own'
        ? 'own key'
        : dollars(row['cost']),
    duration(row['latency_ms']),
    row['api_key'] ?? row['api_key_id'].slice(0, 8),
  ];
}

/** The single figures above the routing report. */
export function expectedRouting({ totals }: Json): Record<string, string> {
  const { classifier, sessions } = totals;
  return {
    Saved: dollars(totals.savings_usd),
    Routed: whole(totals.requests),
    Spend: dollars(totals.spend_usd),
    'Per request': dollars(totals.cost_per_request),
    'p95 latency': duration(totals.p95_latency_ms),
    Errors: percent(totals.error_rate),
    'Classifier calls': whole(classifier.calls),
    'Classifier time': duration(classifier.p50_ms),
    'Classifier cost': known(classifier.cost_usd),
    Confidence: totals.avg_confidence === null ? 'not known' : totals.avg_confidence.toFixed(2),
    'Corrected follow-ups': percent(sessions.correction_rate),
    'Kept on their model': percent(sessions.sticky_share),
  };
}

const PICKED: Readonly<Record<string, string>> = {
  '': 'Order of the tier',
  strength: 'Strong at the kind of work',
  native_api: 'Speaks the called API',
};
const REJECTIONS_SHOWN = 10;
const MODELS_SHOWN = 8;

/** The tables of the routing report, by their captions; bars and dots contain no text. */
export function expectedRoutingTables(data: Json, zone: string): Record<string, string[][]> {
  const rest = data['model_remainder'];
  return {
    'By tier': data['by_tier'].map((row: Json) => [row['tier'] || 'no tier', ...metricsOf(row)]),
    'By model': [
      ...data['by_model'].map((row: Json) => [row['model'], ...metricsOf(row)]),
      ...(rest === null ? [] : [['all others', ...metricsOf(rest)]]),
    ],
    'Kinds of work and models': data['by_task'].map((row: Json) => [
      row['task'] || 'none named',
      whole(row['requests']),
      dollars(row['spend_usd']),
      ...data['by_model'].slice(0, MODELS_SHOWN).map(({ model }: Json) => shareOf(data, row['task'], model)),
    ]),
    Reason: data['reasons'].map(({ reason, requests }: Json) => [
      (REASONS as Record<string, string>)[reason] ?? reason,
      whole(requests),
    ]),
    'Picked by': data['picked_by'].map(({ picked_by: by, requests }: Json) => [PICKED[by] ?? by, whole(requests)]),
    Classifiers: data['classifiers'].map((row: Json) => [
      row['model'],
      whole(row['calls']),
      duration(row['p50_ms']),
      duration(row['p95_ms']),
      known(row['cost_usd']),
    ]),
    'Passed over': (data['rejections'] as Json[])
      .toSorted((one, other) => other['count'] - one['count'])
      .slice(0, REJECTIONS_SHOWN)
      .map(({ model, tier, reason, count }) => [model, tier, spaced(reason), whole(count)]),
    'Versions of the policy': data['policies'].map((row: Json) => [
      `${row['policy']}, version ${row['version']}`,
      whole(row['requests']),
      moment(row['first_used_at'], zone, false),
    ]),
    'Corrected after a tier': correctedAfter(data['by_previous_tier'], 'previous_tier'),
    'Corrected after a model': correctedAfter(data['by_previous_model'], 'previous_model'),
    'Latest corrections': data['recent_corrections'].map((row: Json) => [
      moment(row['at'], zone),
      row['previous_model'] === null ? 'not known' : `${row['previous_model']}${inBrackets(row['previous_tier'])}`,
      `${row['model']}${inBrackets(row['tier'])}${row['escalated'] ? ', one tier up' : ''}`,
      row['task'] || '–',
      row['probability'] === null ? '–' : row['probability'].toFixed(2),
    ]),
  };
}

function metricsOf(row: Json): string[] {
  return [
    whole(row['requests']),
    dollars(row['spend_usd']),
    dollars(row['savings_usd']),
    duration(row['p95_latency_ms']),
    percent(row['error_rate']),
    row['avg_confidence'] === null ? '–' : row['avg_confidence'].toFixed(2),
    whole(row['escalated']),
  ];
}

function shareOf(data: Json, task: string, model: string): string {
  const cell = (data['task_models'] as Json[]).find((one) => one['task'] === task && one['model'] === model);
  return cell === undefined ? '–' : percent(cell['share'], 0);
}

function correctedAfter(rows: readonly Json[], name: string): string[][] {
  return rows.map((row) => [
    row[name] || 'no tier',
    percent(row['correction_rate']),
    // Without follow-ups there is nothing to draw.
    ...(row['follow_ups'] === 0 ? ['not known'] : []),
    whole(row['follow_ups']),
  ]);
}

function inBrackets(tier: string | null): string {
  return tier ? ` (${tier})` : '';
}

function known(amount: string | null): string {
  return amount === null ? 'not known' : dollars(amount);
}
