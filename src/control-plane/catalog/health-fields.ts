// How the health of a provider is shown: to platform administrators in full, to clients without the operator's matters.

import { z } from 'zod';
import {
  type ProviderFailure,
  type ProviderHealth,
  renewalOf,
  statusOf,
  type TokenHealth,
} from '../../domain/models/provider-health.ts';
import { showMoment, showMomentOrNull } from '../identity/fields.ts';

/** The health of a provider as all gateway processes together know it; they tell each other every few seconds. */
export type HealthOf = (providerId: string) => ProviderHealth;

const PUBLIC_FAILURES = [
  'connect',
  'no_reply',
  'timeout',
  'cut',
  'rate_limited',
  'server_error',
  'unavailable',
] as const;
const FAILURES = ['connect', 'no_reply', 'timeout', 'cut', 'rate_limited', 'server_error', 'key_refused'] as const;

const status = z.enum(['ok', 'failing', 'unknown']).meta({
  description: 'By what came last of its calls, a success or a failure. A request that is wrong in itself is neither.',
});
const common = {
  status,
  last_success_at: z.iso.datetime().nullable(),
  last_failure_at: z.iso.datetime().nullable(),
  latency_ms: z.int().nullable().meta({ description: 'From the call to the first byte of the reply, of late.' }),
};

const commonOfToken = {
  expires_at: z.iso.datetime().nullable().meta({ description: 'null: there is no token.' }),
  renewal: z.enum(['ok', 'failing', 'unknown']).meta({ description: 'How the last attempt to obtain one went.' }),
};
const WHOSE_TOKEN = 'Of a provider that takes a token in the place of a key; null: it does not.';

export const publicHealth = z
  .object({
    ...common,
    last_failure: z.enum(PUBLIC_FAILURES).nullable(),
    paused_until: z.iso.datetime().nullable().meta({
      description: 'Until then all requests pass over it, or over some of its models.',
    }),
    token: z.object(commonOfToken).nullable().meta({ description: WHOSE_TOKEN }),
  })
  .meta({ id: 'ProviderHealth', description: 'Of a few seconds ago, over all gateway processes.' });

export const wholeHealth = z
  .object({
    ...common,
    last_failure: z.enum(FAILURES).nullable(),
    last_failure_status: z.int().nullable().meta({ description: 'Of its reply; null: there was none.' }),
    pauses: z.array(
      z.object({
        model: z.string().nullable().meta({ description: 'By its name at the provider; null: the whole address.' }),
        until: z.iso.datetime(),
        for_all: z.boolean().meta({ description: 'False: for the organizations that met the trouble.' }),
      }),
    ),
    token: z
      .object({
        ...commonOfToken,
        obtained_at: z.iso.datetime().nullable(),
        failure: z.string().nullable().meta({ description: 'Why the last attempt failed; null: it did not.' }),
        next_attempt_at: z.iso.datetime().nullable(),
      })
      .nullable()
      .meta({ description: WHOSE_TOKEN }),
  })
  .meta({ id: 'CatalogProviderHealth', description: 'Of a few seconds ago, over all gateway processes.' });

export function showPublicHealth(health: ProviderHealth, nowMs: number): z.output<typeof publicHealth> {
  const forAll = health.pauses.filter(({ isForAll, untilMs }) => isForAll && untilMs > nowMs);
  const untilMs = forAll.length === 0 ? null : Math.max(...forAll.map((pause) => pause.untilMs));
  return {
    ...showCommon(health),
    last_failure: publicFailure(health.lastFailure),
    paused_until: showMomentOrNull(untilMs),
    token: health.token === null ? null : showCommonOfToken(health.token),
  };
}

/** A refusal of the service's key is the operator's matter, so clients see another word. */
function publicFailure(failure: ProviderFailure | null): (typeof PUBLIC_FAILURES)[number] | null {
  return failure === 'key_refused' ? 'unavailable' : failure;
}

export function showWholeHealth(health: ProviderHealth, nowMs: number): z.output<typeof wholeHealth> {
  return {
    ...showCommon(health),
    last_failure: health.lastFailure,
    last_failure_status: health.lastFailureStatus,
    pauses: health.pauses
      .filter(({ untilMs }) => untilMs > nowMs)
      .map(({ model, untilMs, isForAll }) => ({
        model,
        until: showMoment(untilMs),
        for_all: isForAll,
      })),
    token: health.token === null ? null : showWholeToken(health.token),
  };
}

function showWholeToken(token: TokenHealth) {
  return {
    ...showCommonOfToken(token),
    obtained_at: showMomentOrNull(token.obtainedAtMs),
    failure: token.failure,
    next_attempt_at: showMomentOrNull(token.nextAttemptAtMs),
  };
}

function showCommonOfToken(token: TokenHealth) {
  return { expires_at: showMomentOrNull(token.expiresAtMs), renewal: renewalOf(token) };
}

function showCommon(health: ProviderHealth) {
  const { lastSuccessAtMs, lastFailureAtMs, latencyMs } = health;
  return {
    status: statusOf(health),
    last_success_at: showMomentOrNull(lastSuccessAtMs),
    last_failure_at: showMomentOrNull(lastFailureAtMs),
    latency_ms: latencyMs === null ? null : Math.round(latencyMs),
  };
}
