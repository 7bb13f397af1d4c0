// The time limits of calls to providers, and how long idle connections are kept. Both clients use them: our own for
// HTTP/1.1, and undici.

import type { ProviderTimeouts } from '../domain/models/provider.ts';

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** The timeouts that apply unless a provider's configuration sets others. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 90_000,
  totalMs: 3_600_000,
};

/** A connection that is older than this gets no further call, so that calls follow a provider whose address changes. */
export const LENT_MS_MAX = 600_000;

/**
 * How long an idle connection is kept when the server does not say: less than the keep-alive timeout of every common
 * server.
 */
export const KEEP_ALIVE_MS = 4_000;
/** The longest time that an idle connection is kept, even if the server says more. */
export const KEEP_ALIVE_MS_MAX = 60_000;

/** The limit of a reply's head, including the empty line at its end. */
export const HEAD_BYTES_MAX = 65_536;
