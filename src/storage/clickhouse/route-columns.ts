// The columns of a fact that describe the route of an auto-routed request (deploy/clickhouse/0002-model-route.sql). A
// record has its route as one field. This table maps the route's members to columns for facts, listings and exports.

import type { ModelRoute } from '../../domain/routing/model-route.ts';

/**
 * `otherwise` is the value for a request that was not routed; `listed` the member under which listings and exports show
 * it.
 */
type RouteColumn = readonly [
  name: string,
  value: (route: ModelRoute) => unknown,
  otherwise: unknown,
  listed?: keyof ModelRoute,
];

const COLUMNS = [
  ['routed', () => true, false],
  ['route_tier', ({ tier }) => tier ?? '', '', 'tier'],
  ['route_tier_rank', ({ tier_rank }) => tier_rank ?? null, null],
  ['route_classified_tier', ({ classified_tier }) => classified_tier ?? '', '', 'classified_tier'],
  ['route_reason', ({ reason }) => reason, '', 'reason'],
  ['route_confidence', ({ confidence }) => confidence ?? null, null, 'confidence'],
  ['route_cached', ({ cached }) => cached, false, 'cached'],
  ['route_task', ({ task }) => task ?? '', '', 'task'],
  ['route_picked_by', ({ picked_by }) => picked_by ?? '', '', 'picked_by'],
  ['route_escalated', ({ escalated }) => escalated, false],
  ['route_correction', ({ correction }) => correction, false, 'correction'],
  ['route_correction_probability', ({ correction_probability }) => correction_probability ?? null, null],
  ['route_previous_model', ({ previous_model }) => previous_model ?? '', '', 'previous_model'],
  ['route_previous_tier', ({ previous_tier }) => previous_tier ?? '', '', 'previous_tier'],
  ['route_sticky', ({ sticky }) => sticky, false, 'sticky'],
  ['route_safety', ({ safety }) => safety ?? '', ''],
  ['route_baseline_model', ({ baseline_model }) => baseline_model ?? '', '', 'baseline_model'],
  ['route_policy', ({ policy }) => policy, ''],
  ['route_policy_version', ({ policy_version }) => policy_version, 0],
  ['route_session', ({ session }) => session ?? '', ''],
  ['route_turn', ({ turn }) => turn ?? '', ''],
  ['route_rejected_models', ({ rejected }) => rejected.map(({ model }) => model), []],
  ['route_rejected_tiers', ({ rejected }) => rejected.map(({ tier }) => tier), []],
  ['route_rejected_reasons', ({ rejected }) => rejected.map(({ reason }) => reason), []],
  ['route_distribution', ({ distribution }) => distribution ?? {}, {}],
  ['classifier_model', ({ classifier }) => classifier?.model ?? '', ''],
  ['classifier_input_tokens', ({ classifier }) => classifier?.input_tokens ?? null, null],
  ['classifier_cost', ({ classifier }) => classifier?.cost_usd ?? null, null],
  ['classifier_latency_ms', ({ classifier }) => classifier?.latency_ms ?? null, null],
] as const satisfies readonly RouteColumn[];

export type ListedMember = Extract<(typeof COLUMNS)[number], { readonly 3: unknown }>[3];

/** The columns that listings show, and the members they stand for. */
export const LISTED_COLUMNS = COLUMNS.flatMap(([name, , , member]: RouteColumn) =>
  member === undefined ? [] : [{ name, member: member as ListedMember }],
);

/** The columns in the form that facts.ts needs. */
export const ROUTE_COLUMNS = COLUMNS.map(
  ([name, value, otherwise]) =>
    [name, ({ route }: { readonly route?: ModelRoute | null }) => (route == null ? otherwise : value(route))] as const,
);
