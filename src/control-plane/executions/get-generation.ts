// GET /v1/generation?id=: one execution of the principal's organization and payer (spec 4.5). An execution of another
// organization looks like one that does not exist. With `wait=SECONDS` the answer comes when the charge is final, or
// after that time with what is known then.

import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import { executionIdTimeMs } from '../../platform/execution-id.ts';
import { type Generation, renderGeneration } from '../../records/generation.ts';

export interface GenerationParams {
  readonly id: string;
  readonly organizationId: string;
  readonly walletId: string | null;
}

export interface GenerationLookup {
  readonly findGeneration: (params: GenerationParams) => Promise<Generation | null>;
  /** True once everything that any process recorded before the call can be found; false: not in this time. */
  readonly postingPassed: (limitMs: number) => Promise<boolean>;
  readonly clock: Clock;
  /** Whether the process is shutting down, so that look-ups stop waiting. */
  readonly isDraining: () => boolean;
}

/**
 * An execution that is not found, or the end of a pending one, may still be in a spool. Instead of answering 404, or
 * with a charge that is not final, the look-up waits so long for the posting of what was recorded before it.
 */
export const POSTING_WAIT_MS = 3_000;
/** A pending execution may run for long. Without `wait` the end of a young one is awaited for a moment. */
const YOUNG_MS = 15_000;
const WAIT_PENDING_MAX_MS = 500;
const WAIT_SECONDS_MAX = 30;
/** When this many look-ups wait in this process, further ones do not wait. */
const WAITING_MAX = 256;
const ASK_AGAIN_FIRST_MS = 40;
const ASK_AGAIN_MAX_MS = 500;
const ASK_AGAIN_GROWTH = 1.3;

export function getGeneration(
  lookup: GenerationLookup,
): (exchange: Exchange, principal: ScopedPrincipal) => Promise<void> {
  let waiting = 0;
  return async (exchange, principal) => {
    const query = new URLSearchParams(exchange.query);
    const id = query.get('id');
    if (id === null || id === '')
      return exchange.refuse({ kind: 'invalid_field', field: 'id', reason: 'the query must name an execution id' });
    const waitSeconds = readWait(query.get('wait'));
    if (waitSeconds === null) {
      return exchange.refuse({
        kind: 'invalid_field',
        field: 'wait',
        reason: `it must be a whole number of seconds from 0 to ${WAIT_SECONDS_MAX}`,
      });
    }
    const createdAtMs = executionIdTimeMs(id);
    if (createdAtMs === null) return exchange.refuse({ kind: 'not_found' });

    const params = { id: id.toLowerCase(), organizationId: principal.organizationId, walletId: principal.walletId };
    waiting += 1;
    try {
      const mayWait = waiting <= WAITING_MAX;
      const waitMs = mayWait ? waitSeconds * 1_000 : 0;
      const startedAtMs = lookup.clock.monotonicMs();
      const postingWaitMs = mayWait && !lookup.isDraining() ? POSTING_WAIT_MS : 0;
      const pendingWaitMs = Math.min(postingWaitMs, Math.max(WAIT_PENDING_MAX_MS, waitMs));
      const found = await findPosted(lookup, params, { postingWaitMs, pendingWaitMs });
      if (found === null || found === 'unposted')
        return exchange.refuse({ kind: found === null ? 'not_found' : 'not_posted_yet' });
      const generation = await findFinal(lookup, params, { found, startedAtMs, createdAtMs, waitMs }, exchange);
      exchange.answerJson(200, `{"data":${renderGeneration(generation)}}`);
    } finally {
      waiting -= 1;
    }
  };
}

function readWait(text: string | null): number | null {
  if (text === null) return 0;
  return /^\d{1,2}$/.test(text) && Number(text) <= WAIT_SECONDS_MAX ? Number(text) : null;
}

async function findPosted(
  { findGeneration, postingPassed }: GenerationLookup,
  params: GenerationParams,
  { postingWaitMs, pendingWaitMs }: { postingWaitMs: number; pendingWaitMs: number },
): Promise<Generation | null | 'unposted'> {
  const found = await findGeneration(params);
  if (found === null) return (await postingPassed(postingWaitMs)) ? findGeneration(params) : 'unposted';
  if (found.billingStatus !== 'pending' || pendingWaitMs === 0) return found;
  // If the posting cannot be asked about, the execution as it is known is an answer.
  const isPosted = await postingPassed(pendingWaitMs).catch(() => false);
  return isPosted ? ((await findGeneration(params)) ?? found) : found;
}

/** Looks up a pending execution again and again, with growing pauses. */
async function findFinal(
  { findGeneration, clock, isDraining }: GenerationLookup,
  params: GenerationParams,
  {
    found,
    startedAtMs,
    createdAtMs,
    waitMs,
  }: { found: Generation; startedAtMs: number; createdAtMs: number; waitMs: number },
  exchange: Exchange,
): Promise<Generation> {
  let generation = found;
  for (let pauseMs = ASK_AGAIN_FIRST_MS; ; pauseMs = Math.min(ASK_AGAIN_MAX_MS, pauseMs * ASK_AGAIN_GROWTH)) {
    if (generation.billingStatus !== 'pending') return generation;
    const young = clock.nowMs() - createdAtMs < YOUNG_MS;
    const limitMs = young ? Math.max(WAIT_PENDING_MAX_MS, waitMs) : waitMs;
    const leftMs = limitMs - (clock.monotonicMs() - startedAtMs);
    if (leftMs <= 0 || exchange.closed || isDraining()) return generation;
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, leftMs)));
    generation = (await findGeneration(params)) ?? generation;
  }
}
