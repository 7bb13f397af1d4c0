// The answers of reports (spec 2.4, 2.5) for the OpenAPI document. Money is a decimal string of dollars;
// null: not known.

import { z } from 'zod';
import { OWNERS, SERIES_DIMENSIONS } from '../../domain/reports/owners.ts';
import { REPORTED_CORRECTIONS_MAX, REPORTED_MODELS_MAX, SERIES_GROUPS_MAX } from '../../domain/reports/report-query.ts';
import { ROUTE_REASONS } from '../../domain/routing/decide-route.ts';
import { REJECTED_LISTED_MAX } from '../../domain/routing/model-route.ts';
import { PICKED_BY, REJECTION_REASONS } from '../../domain/routing/route-candidates.ts';
import { listedMembers, RECORD_SCHEMAS } from '../openapi/record-schemas.ts';
import { tokenSumSchema } from '../openapi/token-sum-schema.ts';

const usd = z.string();
const count = z.int();
const share = z.number().nullable();
const milliseconds = z.number().nullable();
const moment = z.iso.datetime({ offset: true });
/** A date, or an instant if the request named one. */
const dateOrMoment = z.string();

const usage = { requests: count, tokens_prompt: tokenSumSchema, tokens_completion: tokenSumSchema, cost: usd };

/** An id and a name of each owner. The name is null where there is no such owner, or no longer. */
const ownerFields = Object.fromEntries(
  OWNERS.flatMap((owner) => [
    [`${owner}_id`, z.uuid().nullable()],
    [owner, z.string().nullable()],
  ]),
);
/** The fields that `group_by` asks for are present. */
const groupKey = z.object({ model: z.string(), ...ownerFields }).partial().shape;

export const usageAnswer = z.object({
  data: z
    .object({
      currency: z.literal('USD'),
      start_date: dateOrMoment,
      end_date: dateOrMoment,
      time_zone: z.string(),
      ...ownerFields,
      ...usage,
      by_model: z.array(z.object({ model: z.string(), ...usage })),
      groups: z.array(z.object({ ...groupKey, ...usage })).optional(),
    })
    .meta({
      id: 'UsageSummary',
      description: 'The owners say whose requests are summed up; `groups` is what `group_by` asks for.',
    }),
});

export const dailyAnswer = z.object({
  data: z.array(
    z
      .object({ date: z.iso.date(), ...groupKey, errors: count, ...usage })
      .meta({ id: 'UsageDay', description: 'A day with requests, or a group of them, in the time zone asked for.' }),
  ),
});

const figures = {
  requests: count,
  errors: count,
  tokens_prompt: tokenSumSchema,
  tokens_completion: tokenSumSchema,
  cost: usd,
  p50_latency_ms: milliseconds,
  p95_latency_ms: milliseconds,
  p50_ttft_ms: milliseconds,
  p95_ttft_ms: milliseconds,
};
const seriesFigures = {
  ...figures,
  series: z.array(z.object({ bucket: moment, ...figures }).meta({ id: 'UsagePoint' })),
};
const seriesKey = z
  .object({ ...groupKey, provider: z.string(), tag: z.string().nullable(), status: count.nullable() })
  .partial().shape;

export const seriesAnswer = z.object({
  data: z
    .object({
      currency: z.literal('USD'),
      start_date: dateOrMoment,
      end_date: dateOrMoment,
      granularity: z.enum(['hour', 'day']),
      time_zone: z.string(),
      group_by: z.enum(SERIES_DIMENSIONS).nullable(),
      buckets: z.array(moment).meta({ description: 'Starts of all hours or days of the window, first to last.' }),
      totals: z
        .object(seriesFigures)
        .meta({ description: 'Counts each request once. A bucket without requests has no point.' }),
      groups: z
        .array(z.object({ ...seriesKey, ...seriesFigures }).meta({ id: 'UsageGroupSeries' }))
        .max(SERIES_GROUPS_MAX)
        .meta({
          description: 'The groups of the highest cost. null: requests without such a user, team, tag or status.',
        }),
      remainder: z
        .object({ groups: count, ...seriesFigures })
        .nullable()
        .meta({ description: 'Requests of all other groups, each once; null: there are no others.' }),
    })
    .meta({ id: 'UsageSeries' }),
});

const modelRoute = z
  .object({
    requested: z.string(),
    tier: z.string().optional(),
    classified_tier: z.string().optional(),
    reason: z.enum(ROUTE_REASONS),
    confidence: z.number().optional(),
    cached: z.boolean(),
    task: z.string().optional(),
    picked_by: z.enum(PICKED_BY).optional(),
    correction: z.boolean(),
    previous_model: z.string().optional(),
    previous_tier: z.string().optional(),
    sticky: z.boolean(),
    baseline_model: z.string().optional(),
    baseline_cost_usd: usd.optional(),
  })
  .meta({ id: 'ModelRoute', description: 'Why auto routing chose the model; what does not apply is absent.' });

const requestEntry = z
  .object(listedMembers(modelRoute, { cost: usd.nullable(), currency: z.literal('USD') }))
  .meta({ id: 'RecordedRequest' });

/** Decimal strings of dollars; null: not known, or it does not apply. */
const detailedAmounts = {
  authorized_amount: usd.nullable(),
  rated_cost: usd.nullable(),
  total_cost: usd.nullable(),
  fee: usd.nullable(),
};
const detailedRoute = z
  .object({
    policy: z.string(),
    policy_version: count,
    tier_rank: count.optional(),
    escalated: z.boolean(),
    distribution: z.record(z.string(), z.number()).optional(),
    correction_probability: z.number().optional(),
    classifier: z
      .object({ model: z.string(), input_tokens: count.nullable(), cost_usd: usd.nullable(), latency_ms: z.number() })
      .optional()
      .meta({ description: 'The call of the classifier, in the request that made it.' }),
    rejected: z
      .array(z.object({ model: z.string(), tier: z.string(), reason: z.enum(REJECTION_REASONS) }))
      .meta({ description: `Candidates that were passed over, the first ${REJECTED_LISTED_MAX}.` }),
    rejected_more: count.optional().meta({ description: 'How many more were passed over.' }),
    safety: z.string().optional(),
  })
  .meta({ id: 'RouteDetails', description: 'How the model was chosen, beyond `model_route`.' });
const { attempts, failures, screening, details } = RECORD_SCHEMAS;

const requestDetails = z
  .object({
    ended_at: moment,
    outcome: z.string(),
    truncated: z.boolean(),
    usage_source: z.string().nullable(),
    usage_problem: z.string().nullable().meta({
      description: 'Why the usage was not taken as the provider reported it, or was charged as held.',
    }),
    usage_details: details.nullable(),
    tokens_cache_write: count.nullable(),
    tokens_reasoning: count.nullable(),
    images: count.nullable(),
    price_version: z.string().nullable(),
    ...detailedAmounts,
    request_bytes: count,
    response_bytes: count,
    route: detailedRoute.nullable(),
    attempts: attempts.meta({
      description: 'Calls to providers in their order, in milliseconds since the request came; empty: one at most.',
    }),
    guardrail: screening.nullable(),
    own_failures: failures,
  })
  .meta({ id: 'RequestDetails' });

export const requestAnswer = z.object({
  data: requestEntry
    .extend({
      details: requestDetails.nullable().meta({
        description: 'null: no longer kept, as for requests refused a while ago, or not available at the moment.',
      }),
    })
    .meta({ id: 'DetailedRequest' }),
});

export const requestsAnswer = z.object({ data: z.array(requestEntry), next_cursor: z.string().nullable() });

const metrics = {
  requests: count,
  tokens: tokenSumSchema,
  spend_usd: usd,
  baseline_requests: count,
  baseline_spend_usd: usd,
  baseline_cost_usd: usd,
  errors: count,
  truncated: count,
  cached: count,
  escalated: count,
  fallbacks: count,
  task_applied: count,
  p50_latency_ms: milliseconds,
  p95_latency_ms: milliseconds,
  p50_ttft_ms: milliseconds,
  avg_confidence: share,
  share,
  cost_per_request: usd.nullable(),
  savings_usd: usd,
  savings_pct: z.number().nullable(),
  error_rate: share,
  truncation_rate: share,
};
const classifier = {
  calls: count,
  input_tokens: tokenSumSchema,
  p50_ms: milliseconds,
  p95_ms: milliseconds,
  cost_usd: usd.nullable(),
};
const afterAnswer = { follow_ups: count, corrections: count, correction_rate: share };

const bucketFigures = {
  bucket: moment,
  requests: count,
  spend_usd: usd,
  baseline_cost_usd: usd,
  baseline_spend_usd: usd,
};

/** The report of spec 2.5 with the parameters of the request. */
export const routingAnswer = z
  .object({
    start_date: dateOrMoment,
    end_date: dateOrMoment,
    granularity: z.enum(['hour', 'day']),
    time_zone: z.string(),
    totals: z.object({
      ...metrics,
      all_requests: count,
      routed_share: share,
      classifier: z.object({ ...classifier, fallback_rate: share, cached_share: share, escalated_share: share }),
      sessions: z.object({ ...afterAnswer, remembered: count, escalated: count, sticky: count, sticky_share: share }),
    }),
    series: z.array(z.object({ ...bucketFigures, tier: z.string() })),
    series_totals: z.array(z.object(bucketFigures)).meta({ description: 'All tiers together.' }),
    by_tier: z.array(z.object({ tier: z.string(), rank: count.nullable(), ...metrics })),
    by_model: z.array(z.object({ model: z.string(), ...metrics })).max(REPORTED_MODELS_MAX),
    model_remainder: z.object(metrics).nullable(),
    by_task: z.array(z.object({ task: z.string(), ...metrics })),
    task_models: z.array(z.object({ task: z.string(), model: z.string(), ...metrics })),
    picked_by: z.array(z.object({ picked_by: z.enum(['', ...PICKED_BY]), requests: count })),
    reasons: z.array(z.object({ reason: z.enum(ROUTE_REASONS), requests: count })),
    confidence: z.array(z.object({ from: z.number(), to: z.number(), requests: count })),
    rejections: z.array(z.object({ model: z.string(), tier: z.string(), reason: z.enum(REJECTION_REASONS), count })),
    classifiers: z.array(z.object({ model: z.string(), ...classifier })),
    policies: z.array(
      z.object({ policy: z.string(), version: count, requests: count, first_used_at: moment, last_used_at: moment }),
    ),
    by_previous_tier: z.array(z.object({ previous_tier: z.string(), ...afterAnswer })),
    by_previous_model: z.array(z.object({ previous_model: z.string(), ...afterAnswer })),
    recent_corrections: z
      .array(
        z.object({
          at: moment,
          request_id: z.uuid(),
          previous_model: z.string().nullable(),
          previous_tier: z.string().nullable(),
          model: z.string(),
          tier: z.string().nullable(),
          task: z.string().nullable(),
          probability: z.number().nullable(),
          escalated: z.boolean(),
        }),
      )
      .max(REPORTED_CORRECTIONS_MAX)
      .nullable()
      .meta({ description: 'null for teams, for the member view of an organization, and for the platform.' }),
  })
  .meta({ id: 'RoutingReport' });

export const guardrailAnswer = z.object({
  data: z
    .object({
      start_date: dateOrMoment,
      end_date: dateOrMoment,
      granularity: z.enum(['hour', 'day']),
      time_zone: z.string(),
      screened: count.meta({ description: 'Requests that guardrails ran on.' }),
      blocked: count,
      not_scanned: z.array(z.object({ reason: z.string(), requests: count })),
      rows: z
        .array(
          z.object({
            policy: z.string(),
            rule: z.string(),
            entity: z.string(),
            stage: z.enum(['input', 'output']),
            action: z.enum(['block', 'mask', 'cloak', 'flag']),
            model: z.string(),
            api_key_id: z.uuid(),
            api_key: z.string().nullable(),
            requests: count,
            findings: count,
          }),
        )
        .meta({ description: 'The most frequent first, at most 1,000. Empty model: blocked before one was chosen.' }),
    })
    .meta({
      id: 'GuardrailReport',
      description: 'Names and counts: no value that was found, and nothing derived from one.',
    }),
});
