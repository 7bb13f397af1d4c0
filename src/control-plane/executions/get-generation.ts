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
  readonly clock: Clock;
  /** Whether the process is shutting down, so that look-ups stop waiting. */
  readonly isDraining: () => boolean;
}

/** A record this young may still be in the spool, so the look-up waits for it instead of answering 404. */
const ON_ITS_WAY_MS = 15_000;
const WAIT_ABSENT_MAX_MS = 3_000;
/** A pending execution may run for long. Without `wait` its end is awaited only as long as posting a record takes. */
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
      const waitMs = waiting > WAITING_MAX ? 0 : waitSeconds * 1_000;
      const generation = await findSoon(lookup, params, { createdAtMs, waitMs }, exchange);
      if (generation === null) exchange.refuse({ kind: 'not_found' });
      else exchange.answerJson(200, `{"data":${renderGeneration(generation)}}`);
    } finally {
      waiting -= 1;
    }
  };
}

function readWait(text: string | null): number | null {
  if (text === null) return 0;
  return /^\d{1,2}$/.test(text) && Number(text) <= WAIT_SECONDS_MAX ? Number(text) : null;
}

/** Looks up again and again, with growing pauses. */
async function findSoon(
  { findGeneration, clock, isDraining }: GenerationLookup,
  params: GenerationParams,
  { createdAtMs, waitMs }: { createdAtMs: number; waitMs: number },
  exchange: Exchange,
): Promise<Generation | null> {
  const startedAtMs = clock.monotonicMs();
  let pauseMs = ASK_AGAIN_FIRST_MS;
  for (;;) {
    const generation = await findGeneration(params);
    if (generation !== null && generation.billingStatus !== 'pending') return generation;
    const young = clock.nowMs() - createdAtMs < ON_ITS_WAY_MS;
    const ownMs = generation === null ? WAIT_ABSENT_MAX_MS : WAIT_PENDING_MAX_MS;
    // An execution that is absent and not young does not exist.
    const limitMs = young ? Math.max(ownMs, waitMs) : generation === null ? 0 : waitMs;
    const leftMs = limitMs - (clock.monotonicMs() - startedAtMs);
    if (leftMs <= 0 || exchange.closed || isDraining()) return generation;
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, leftMs)));
    pauseMs = Math.min(ASK_AGAIN_MAX_MS, pauseMs * ASK_AGAIN_GROWTH);
  }
}
