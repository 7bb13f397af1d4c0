// The conversation part of the routing report (spec 2.5): follow-ups, corrections and escalations, counted once per
// turn, and the latest corrections.

import { REPORTED_CORRECTIONS_MAX } from '../../../domain/reports/report-query.ts';
import type { ClickHouseReader } from '../clickhouse.ts';
import { type Cells, checkedCells, checkedUnion, STATUS_OF_FACT } from './cells.ts';
import { IS_NOT_REFUSED, ratio } from './metrics.ts';
import { checkedConditions, conditionParameters, type ReportParams } from './report-params.ts';
import { REPORT_SETTINGS, selectReport } from './select-report.ts';

/**
 * A human turn can consist of many requests (tool calls). A 64-bit hash stands for it: with ten million turns, one
 * report in 400,000 would count two turns as one. A request without a known conversation is a turn of its own.
 */
const TURN = "if(route_turn = '', cityHash64(id), cityHash64(route_session, route_turn))";

const IS_REMEMBERED = "route_previous_model != ''";
const IS_CONTINUED = `(route_reason = 'continuation' AND ${IS_REMEMBERED})`;
/**
 * The classifier was asked whether the turn corrects the previous answer, or a person's message continues a response.
 */
const IS_FOLLOW_UP = `(isNotNull(route_correction_probability) OR ${IS_CONTINUED})`;
/** Escalations because of a correction; low confidence also escalates first turns. */
const IS_ESCALATED = "route_reason = 'correction_escalated'";

export interface AfterAnswer {
  readonly follow_ups: number;
  readonly corrections: number;
  readonly correction_rate: number | null;
}

export interface Sessions extends AfterAnswer {
  /** Requests whose previous turn's route was remembered. */
  readonly remembered: number;
  readonly escalated: number;
  readonly sticky: number;
  /** Share of the remembered requests. */
  readonly sticky_share: number | null;
}

export interface RoutingConversations {
  readonly sessions: Sessions;
  readonly by_previous_tier: readonly (AfterAnswer & { readonly previous_tier: string })[];
  readonly by_previous_model: readonly (AfterAnswer & { readonly previous_model: string })[];
}

interface ConversationRow {
  readonly is_remembered: number;
  readonly previous_tier: string;
  readonly previous_model: string;
  readonly grouped_by: number;
  readonly follow_ups: number;
  readonly corrections: number;
  readonly escalated: number;
  readonly remembered: number;
  readonly sticky: number;
}

/** The bits of `grouped_by`, each set for a key by which the row is not grouped. */
const OF_ALL = 0b111;
const OF_TIER = 0b001;
const OF_MODEL = 0b010;

/** The columns of a request, and the aggregate that merges each of them over the requests of a turn. */
const OF_TURN = [
  ['previous_model', 'route_previous_model', 'max'],
  ['previous_tier', 'route_previous_tier', 'max'],
  ['follow_up', `toUInt8(${IS_FOLLOW_UP})`, 'max'],
  ['correction', 'toUInt8(route_correction)', 'max'],
  ['escalated', `toUInt8(${IS_ESCALATED})`, 'max'],
  ['remembered', `toUInt64(${IS_REMEMBERED})`, 'sum'],
  ['sticky', 'toUInt64(route_sticky)', 'sum'],
] as const;

/** No figure counts a turn that is neither a follow-up nor has a remembered route. */
const COUNTED = `routed AND ${IS_NOT_REFUSED} AND (${IS_FOLLOW_UP} OR ${IS_REMEMBERED})`;

export const TURN_CELLS: Cells = {
  table: 'sealed_turns',
  counted: COUNTED,
  keys: [['turn', TURN]],
  values: OF_TURN.map(([name, sql, merge]) => [name, `${merge}(${sql})`]),
  sums: [
    [`countIf(${COUNTED} AND ${IS_REMEMBERED})`, 'sum(remembered)'],
    [`countIf(${COUNTED} AND route_sticky)`, 'sum(sticky)'],
  ],
  ofFact: [['turn', TURN], ...OF_TURN.map(([name, sql]) => [name, sql] as const)],
};

/**
 * How a turn keeps the names of its previous model and tier while requests are read: as they are, or as positions in
 * the sorted list of all names. Both give the same figures. For ten million requests, positions take a quarter less
 * memory at the same CPU. For two million requests that a filter finds among ten million, reading the list of names
 * first costs a tenth to a third of the statement.
 */
export type TurnNames = 'names' | 'positions';

/** Up to this many routed requests, turns keep names. Nothing was measured between two and seven million. */
export const TURN_NAMES_MAX = 2_000_000;

/** The list of names is read without FINAL. It includes the names of all versions of facts, so none is missing. */
const NAMES = [
  { column: 'previous_model', ofFact: 'route_previous_model', all: 'names.1' },
  { column: 'previous_tier', ofFact: 'route_previous_tier', all: 'names.2' },
] as const;
const ALL_NAMES = NAMES.map(({ column }) => `arraySort(groupUniqArray(${column}))`).join(', ');
const FACT_NAMES = NAMES.map(({ column, ofFact }) => `${ofFact} AS ${column}`).join(', ');

function checkedNamesOfTurn(turnNames: TurnNames): string {
  return NAMES.map(({ column, all }) =>
    turnNames === 'names'
      ? `max(${column}) AS ${column}_of_turn`
      : `${all}[max(toUInt32(transform(${column}, ${all}, arrayEnumerate(${all}), 0)))] AS ${column}_of_turn`,
  ).join(', ');
}

function checkedNameList(params: ReportParams): string {
  const sources = checkedUnion(
    params,
    `SELECT ${FACT_NAMES} FROM request_facts WHERE routed AND ${checkedConditions(params)}`,
    'SELECT previous_model, previous_tier FROM sealed_turns',
  );
  return `WITH (SELECT (${ALL_NAMES}) FROM (${sources})) AS names`;
}

export async function selectRoutingConversations(
  client: ClickHouseReader,
  params: ReportParams,
  turnNames: TurnNames,
): Promise<RoutingConversations> {
  const rows = await selectReport<ConversationRow>(
    client,
    `${turnNames === 'positions' ? checkedNameList(params) : ''}
     SELECT is_remembered, previous_tier, previous_model, grouping(is_remembered, previous_tier,
       previous_model) AS grouped_by,
       countIf(is_follow_up) AS follow_ups, countIf(is_correction) AS corrections, countIf(is_escalated) AS escalated,
       sum(remembered_requests) AS remembered, sum(sticky_requests) AS sticky
     FROM (
       SELECT previous_model_of_turn AS previous_model, previous_tier_of_turn AS previous_tier,
         toUInt8(previous_model != '') AS is_remembered, is_follow_up, is_correction, is_escalated,
         remembered_requests, sticky_requests
       FROM (
         SELECT ${checkedNamesOfTurn(turnNames)},
           max(follow_up) AS is_follow_up, max(correction) AS is_correction, max(escalated) AS is_escalated,
           sum(remembered) AS remembered_requests, sum(sticky) AS sticky_requests
         FROM (${checkedCells(TURN_CELLS, params)})
         GROUP BY turn
       )
     )
     GROUP BY GROUPING SETS ((), (is_remembered, previous_tier), (is_remembered, previous_model))
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const after = (grouping: number): ConversationRow[] =>
    rows.filter((row) => row.grouped_by === grouping && row.is_remembered === 1 && row.follow_ups > 0);
  return {
    sessions: sessionsOf(rows.find((row) => row.grouped_by === OF_ALL)),
    by_previous_tier: after(OF_TIER)
      .sort((a, b) => b.follow_ups - a.follow_ups || compareText(a.previous_tier, b.previous_tier))
      .map((row) => ({ previous_tier: row.previous_tier, ...afterAnswer(row) })),
    by_previous_model: after(OF_MODEL)
      .sort((a, b) => b.follow_ups - a.follow_ups || compareText(a.previous_model, b.previous_model))
      .map((row) => ({ previous_model: row.previous_model, ...afterAnswer(row) })),
  };
}

function sessionsOf(row: ConversationRow | undefined): Sessions {
  const { remembered = 0, escalated = 0, sticky = 0 } = row ?? {};
  return { ...afterAnswer(row), remembered, escalated, sticky, sticky_share: ratio(sticky, remembered) };
}

function afterAnswer(row: ConversationRow | undefined): AfterAnswer {
  const { follow_ups = 0, corrections = 0 } = row ?? {};
  return { follow_ups, corrections, correction_rate: ratio(corrections, follow_ups) };
}

export function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

export interface RecentCorrection {
  readonly at: string;
  readonly request_id: string;
  readonly previous_model: string | null;
  readonly previous_tier: string | null;
  readonly model: string;
  readonly tier: string | null;
  readonly task: string | null;
  readonly probability: number | null;
  readonly escalated: boolean;
}

interface CorrectionRow
  extends Omit<RecentCorrection, 'at' | 'escalated' | 'previous_model' | 'previous_tier' | 'model' | 'tier' | 'task'> {
  readonly at_ms: number;
  readonly served: string;
  readonly previous_model: string;
  readonly previous_tier: string;
  readonly tier: string;
  readonly task: string;
  readonly escalated: number;
}

interface CorrectionKey {
  readonly at_ms: number;
  readonly first_id: string;
}

const CORRECTED = `routed AND ${IS_NOT_REFUSED} AND route_correction`;

/** The first request of each turn that corrected an answer. Sealed cells have the first request of each status. */
export const CORRECTION_CELLS: Cells = {
  table: 'sealed_corrections',
  counted: CORRECTED,
  keys: [['turn', TURN]],
  values: [['first', 'min((admitted_at, id))']],
  sums: [[`uniqExactIf((${TURN}, ${STATUS_OF_FACT}), ${CORRECTED})`, 'count()']],
  ofFact: [
    ['turn', TURN],
    ['first', '(admitted_at, id)'],
  ],
};

/**
 * The latest corrections, each shown by the first request of its turn. The first statement finds these requests with
 * few columns, since `FINAL` reads every column of all requests. The second reads what is shown, in the short stretch
 * of time that contains them.
 */
export async function selectRecentCorrections(
  client: ClickHouseReader,
  params: ReportParams,
): Promise<RecentCorrection[]> {
  const keys = await selectReport<CorrectionKey>(
    client,
    `SELECT toUnixTimestamp64Milli(first_of_turn.1) AS at_ms, toString(first_of_turn.2) AS first_id
     FROM (
       SELECT min(first) AS first_of_turn
       FROM (${checkedCells(CORRECTION_CELLS, params)})
       GROUP BY turn
     )
     ORDER BY first_of_turn DESC
     LIMIT ${REPORTED_CORRECTIONS_MAX}
     ${REPORT_SETTINGS}`,
    conditionParameters(params),
  );
  const [latest, earliest] = [keys[0], keys.at(-1)];
  if (latest === undefined || earliest === undefined) return [];
  const { sealed: _, ...unsealed } = params;
  const window = { ...params.window, fromMs: earliest.at_ms, untilMs: latest.at_ms + 1 };
  const shown = { ...unsealed, window };
  const rows = await selectReport<CorrectionRow>(
    client,
    `SELECT toUnixTimestamp64Milli(admitted_at) AS at_ms, toString(id) AS request_id,
       toString(route_previous_model) AS previous_model, toString(route_previous_tier) AS previous_tier,
       toString(model) AS served, toString(route_tier) AS tier, toString(route_task) AS task,
       route_correction_probability AS probability, toUInt8(${IS_ESCALATED}) AS escalated
     FROM request_facts FINAL
     WHERE id IN {ids:Array(UUID)} AND ${checkedConditions(shown)}
     ORDER BY admitted_at DESC, id DESC
     ${REPORT_SETTINGS}`,
    { ...conditionParameters(shown), ids: keys.map(({ first_id }) => first_id) },
  );
  return rows.map(({ at_ms, ...row }) => ({
    at: new Date(at_ms).toISOString(),
    request_id: row.request_id,
    previous_model: row.previous_model === '' ? null : row.previous_model,
    previous_tier: row.previous_tier === '' ? null : row.previous_tier,
    model: row.served,
    tier: row.tier === '' ? null : row.tier,
    task: row.task === '' ? null : row.task,
    probability: row.probability,
    escalated: row.escalated === 1,
  }));
}
