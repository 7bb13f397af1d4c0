// GET /v1/generation?id=: one execution of the caller's organization and payer (spec 4.5). Foreign and absent look the same.

import { type Generation, renderGeneration } from '../../domain/executions/generation.ts';
import type { ScopedPrincipal } from '../../domain/identity/principal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';
import { executionIdTimeMs } from '../../platform/execution-id.ts';

export interface GenerationQuestion {
  readonly id: string;
  readonly organizationId: string;
  readonly walletId: string | null;
}

export interface GenerationLookup {
  readonly findGeneration: (question: GenerationQuestion) => Promise<Generation | null>;
  readonly clock: Clock;
}

/** An id this young may still be on its way from the spool: the lookup waits for it instead of answering 404 (DESIGN 4). */
const ON_ITS_WAY_MS = 15_000;
const WAIT_ABSENT_MAX_MS = 3_000;
/** One that is still pending may be running for long: its end is waited for only as long as a record takes to be posted. */
const WAIT_PENDING_MAX_MS = 500;
const ASK_AGAIN_MS = 40;

export function getGeneration(lookup: GenerationLookup): (exchange: Exchange, principal: ScopedPrincipal) => Promise<void> {
  return async (exchange, principal) => {
    const id = new URLSearchParams(exchange.query).get('id');
    if (id === null || id === '') return exchange.refuse({ kind: 'invalid_field', field: 'id', reason: 'the query must name an execution id' });
    const createdAtMs = executionIdTimeMs(id);
    if (createdAtMs === null) return exchange.refuse({ kind: 'not_found' });

    const question = { id: id.toLowerCase(), organizationId: principal.organizationId, walletId: principal.walletId };
    const generation = await findSoon(lookup, question, createdAtMs, exchange);
    if (generation === null) exchange.refuse({ kind: 'not_found' });
    else exchange.answerJson(200, `{"data":${renderGeneration(generation)}}`);
  };
}

async function findSoon(lookup: GenerationLookup, question: GenerationQuestion, createdAtMs: number, exchange: Exchange): Promise<Generation | null> {
  const startedAtMs = lookup.clock.monotonicMs();
  for (;;) {
    const generation = await lookup.findGeneration(question);
    if (generation !== null && generation.billingStatus !== 'pending') return generation;
    const waitMaxMs = generation === null ? WAIT_ABSENT_MAX_MS : WAIT_PENDING_MAX_MS;
    const waitedMs = lookup.clock.monotonicMs() - startedAtMs;
    const young = lookup.clock.nowMs() - createdAtMs < ON_ITS_WAY_MS;
    if (!young || exchange.closed || waitedMs > waitMaxMs) return generation;
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
}
