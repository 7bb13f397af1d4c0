// Stores the routes of human turns. The first process claims a turn and decides its route, once in the whole cluster.
// The route is stored for the turn's other requests and for the next turn.

import type { RouteDecision } from '../../../domain/routing/decide-route.ts';
import type { TerminalRecord } from '../../../records/execution-record.ts';
import type { PostgresClient } from '../pool.ts';

export interface TurnName {
  readonly conversation: string;
  readonly turn: string;
}

export interface TurnClaim extends TurnName {
  readonly organizationId: string;
  /** Possible names of the previous turn, from the client's history, the likeliest first; empty: it shows none. */
  readonly previousTurns: readonly string[];
  readonly offersTools: boolean;
  /** Hash of the beginning of the system prompt. */
  readonly instructions: string;
}

/** What is stored about a turn and the one before it. */
export interface RememberedTurn {
  /** null: the turn is not decided yet. */
  readonly decision: RouteDecision | null;
  /** How long ago the turn was claimed, in milliseconds; null: it is not claimed. */
  readonly claimedAgoMs: number | null;
  /** The previous turn, which was decided; null: none is known. */
  readonly previous: PreviousTurn | null;
}

export interface PreviousTurn {
  readonly turn: string;
  readonly decision: RouteDecision;
  /** Input tokens of the turn's largest request; null: not known yet. */
  readonly inputTokens: number | null;
  readonly requestBytes: number | null;
}

interface TurnRow {
  readonly claimed: boolean;
  readonly decision: RouteDecision | null;
  readonly claimed_ago_ms: number | null;
  readonly previous: RouteDecision | null;
  readonly previous_turn: string | null;
  readonly input_tokens: string | null;
  readonly request_bytes: string | null;
}

/**
 * The previous turn is the one that the client's history shows. If the history shows none, it is the latest earlier
 * turn that offered tools exactly if this one does, preferably one with the same system prompt.
 *
 * A row that another transaction inserts at the same moment prevents our insert but is not visible yet. The result then
 * has neither `claimed` nor a decision.
 */
const TURN = `
  SELECT EXISTS (SELECT FROM claim) AS claimed, own.decision,
    (extract(epoch FROM clock_timestamp() - own.claimed_at) * 1000)::double precision AS claimed_ago_ms,
         previous.decision AS previous, previous.turn AS previous_turn, previous.input_tokens, previous.request_bytes
    FROM (SELECT $1::text AS conversation, $2::text AS turn) wanted
    LEFT JOIN routing_turns own USING (conversation, turn)
    LEFT JOIN LATERAL (
      SELECT turn, decision, input_tokens, request_bytes FROM routing_turns
       WHERE conversation = $1 AND turn <> $2 AND decision IS NOT NULL
         AND (turn = ANY($3::text[])
              OR offers_tools = $4::boolean AND (own.claimed_at IS NULL OR claimed_at < own.claimed_at))
       ORDER BY array_position($3::text[], turn), instructions = $5::text DESC, claimed_at DESC LIMIT 1
    ) previous ON true`;

/**
 * A request waits for each of these writes, and no money depends on them, so the commit does not wait for the disk. If
 * Postgres crashes, it may lose the turns of the last moments, which are then decided again.
 */
const ASYNCHRONOUS_COMMIT = `(SELECT set_config('synchronous_commit', 'off', true)) AS asynchronous_commit`;

const CLAIM = {
  name: 'claim_routing_turn',
  text: `
    WITH claim AS (
      INSERT INTO routing_turns (conversation, turn, offers_tools, instructions, organization_id)
        SELECT $1, $2, $4::boolean, $5::text, $6::uuid FROM ${ASYNCHRONOUS_COMMIT}
      ON CONFLICT (conversation, turn) DO NOTHING RETURNING 1
    ) ${TURN}`,
};
const FIND = { name: 'find_routing_turn', text: `WITH claim AS (SELECT 1 WHERE false) ${TURN}` };

/** `claimed`: the caller must decide the turn. */
export async function claimTurn(
  postgres: PostgresClient,
  turn: TurnClaim,
): Promise<RememberedTurn & { readonly claimed: boolean }> {
  const { rows } = await postgres.query<TurnRow>(CLAIM, [...namesOf(turn), turn.organizationId]);
  return { ...toTurn(rows[0]), claimed: rows[0]?.claimed ?? false };
}

export async function findTurn(
  postgres: PostgresClient,
  turn: Omit<TurnClaim, 'organizationId'>,
): Promise<RememberedTurn> {
  const { rows } = await postgres.query<TurnRow>(FIND, namesOf(turn));
  return toTurn(rows[0]);
}

/** The first parameters of both statements. */
function namesOf(turn: Omit<TurnClaim, 'organizationId'>): unknown[] {
  return [turn.conversation, turn.turn, turn.previousTurns, turn.offersTools, turn.instructions];
}

function toTurn(row: TurnRow | undefined): RememberedTurn {
  if (row === undefined) return { decision: null, claimedAgoMs: null, previous: null };
  const {
    decision,
    claimed_ago_ms: claimedAgoMs,
    previous,
    previous_turn: previousTurn,
    input_tokens: inputTokens,
    request_bytes: requestBytes,
  } = row;
  return {
    decision,
    claimedAgoMs,
    previous:
      previous === null || previousTurn === null
        ? null
        : {
            turn: previousTurn,
            decision: previous,
            inputTokens: toNumber(inputTokens),
            requestBytes: toNumber(requestBytes),
          },
  };
}

function toNumber(count: string | null): number | null {
  return count === null ? null : Number(count);
}

const DECIDE = {
  name: 'decide_routing_turn',
  text: `UPDATE routing_turns SET decision = $3::jsonb FROM ${ASYNCHRONOUS_COMMIT}
    WHERE conversation = $1 AND turn = $2 AND decision IS NULL`,
};
const READ = {
  name: 'read_routing_turn',
  text: 'SELECT decision FROM routing_turns WHERE conversation = $1 AND turn = $2',
};

/** null: this decision was stored. Otherwise the result is the decision that was stored before, which counts. */
export async function decideTurn(
  postgres: PostgresClient,
  { conversation, turn }: TurnName,
  decision: RouteDecision,
): Promise<RouteDecision | null> {
  const { rowCount } = await postgres.query(DECIDE, [conversation, turn, JSON.stringify(decision)]);
  if (rowCount > 0) return null;
  const { rows } = await postgres.query<{ decision: RouteDecision | null }>(READ, [conversation, turn]);
  return rows[0]?.decision ?? null;
}

const RELEASE = {
  name: 'release_routing_turn',
  text: `DELETE FROM routing_turns USING ${ASYNCHRONOUS_COMMIT}
    WHERE conversation = $1 AND turn = $2 AND decision IS NULL`,
};

/** Gives up the claim on a turn, unless the turn is decided. */
export async function releaseTurn(postgres: PostgresClient, { conversation, turn }: TurnName): Promise<void> {
  await postgres.query(RELEASE, [conversation, turn]);
}

/**
 * Stores how large the requests of turns were. This is a part of the statement that posts executions
 * (post-executions.ts), whose seventh parameter is the result of sizesAsJson.
 */
export const REMEMBER_SIZES = `
    UPDATE routing_turns AS stored SET input_tokens = record."inputTokens", request_bytes = record."requestBytes"
      FROM json_to_recordset($7::json) AS record ("conversation" text, "turn" text, "inputTokens" bigint,
        "requestBytes" bigint)
     WHERE EXISTS (SELECT FROM moved) AND stored.conversation = record."conversation" AND stored.turn = record."turn"
       AND (stored.request_bytes IS NULL OR stored.request_bytes < record."requestBytes")`;

/** The parameter of REMEMBER_SIZES for these executions. Most batches have no routed one. */
export function sizesAsJson(terminals: readonly TerminalRecord[]): string {
  const largest = new Map<string, { conversation: string; turn: string; inputTokens: number; requestBytes: number }>();
  for (const { route, usage, usageSource, api, requestBytes } of terminals) {
    const inputTokens = usage?.inputTokens ?? null;
    // A request to count tokens is not a turn of the conversation, and our own counts leave out attachments.
    if (
      route?.conversation === undefined ||
      route.turn === undefined ||
      inputTokens === null ||
      usageSource !== 'reported' ||
      api === 'count_tokens'
    )
      continue;
    const key = `${route.conversation} ${route.turn}`;
    if ((largest.get(key)?.requestBytes ?? -1) < requestBytes)
      largest.set(key, { conversation: route.conversation, turn: route.turn, inputTokens, requestBytes });
  }
  return JSON.stringify([...largest.values()]);
}

/** Deletes turns that were claimed before an instant; returns how many. */
export async function forgetTurns(postgres: PostgresClient, before: Date): Promise<number> {
  const { rowCount } = await postgres.query('DELETE FROM routing_turns WHERE claimed_at < $1', [before]);
  return rowCount;
}
