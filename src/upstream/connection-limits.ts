// The time limits of calls to providers, and how long their connections are kept, whichever client makes them: our own
// over HTTP/1.1, or undici.

import type { ProviderTimeouts } from '../domain/models/provider.ts';

export type UpstreamTimeouts = Readonly<Required<ProviderTimeouts>>;

/** The timeouts that apply unless a provider's configuration sets others. */
export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = {
  connectMs: 5_000,
  firstByteMs: 120_000,
  idleMs: 90_000,
  totalMs: 3_600_000,
};

/** A connection is lent for so long at most, so that a provider which moves is followed. */
export const LENT_MS_MAX = 600_000;

/**
 * How long a connection is kept idle where the server does not say. Under the keep-alive timeout of every common
 * server.
 */
export const KEEP_ALIVE_MS = 4_000;
/** However long the server says. */
export const KEEP_ALIVE_MS_MAX = 60_000;

/** The limit of a reply's head, including the empty line at its end. */
export const HEAD_BYTES_MAX = 65_536;
