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
  description: 'Whether the last call to it succeeded or failed. A call for a wrong request counts as neither.',
});
const common = {
  status,
  last_success_at: z.iso.datetime().nullable(),
  last_failure_at: z.iso.datetime().nullable(),
  latency_ms: z
    .int()
    .nullable()
    .meta({ description: 'A recent mean of the time from the call to the first byte of the reply.' }),
};

const commonOfToken = {
  expires_at: z.iso.datetime().nullable().meta({ description: 'null: there is no token.' }),
  renewal: z.enum(['ok', 'failing', 'unknown']).meta({ description: 'How the last attempt to obtain a token went.' }),
};
const WHOSE_TOKEN = 'The token that the provider takes in place of a key; null: it takes none.';

export const publicHealth = z
  .object({
    ...common,
    last_failure: z.enum(PUBLIC_FAILURES).nullable(),
    paused_until: z.iso.datetime().nullable().meta({
      description: 'Until then no request goes to the provider, or to some of its models.',
    }),
    token: z.object(commonOfToken).nullable().meta({ description: WHOSE_TOKEN }),
  })
  .meta({ id: 'ProviderHealth', description: 'As all gateway processes together saw it a few seconds ago.' });

export const wholeHealth = z
  .object({
    ...common,
    last_failure: z.enum(FAILURES).nullable(),
    last_failure_status: z.int().nullable().meta({ description: 'The status of the reply; null: there was no reply.' }),
    pauses: z.array(
      z.object({
        model: z
          .string()
          .nullable()
          .meta({ description: 'The model’s name at the provider; null: everything at its address.' }),
        until: z.iso.datetime(),
        for_all: z
          .boolean()
          .meta({ description: 'False: the pause holds only for the organizations that met the trouble.' }),
      }),
    ),
    token: z
      .object({
        ...commonOfToken,
        obtained_at: z.iso.datetime().nullable(),
        failure: z.string().nullable().meta({ description: 'Why the last attempt failed; null: it did not fail.' }),
        next_attempt_at: z.iso.datetime().nullable(),
      })
      .nullable()
      .meta({ description: WHOSE_TOKEN }),
  })
  .meta({ id: 'CatalogProviderHealth', description: 'As all gateway processes together saw it a few seconds ago.' });

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
