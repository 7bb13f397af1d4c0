// The sessions of the console as requests use them: their cookie, and their end, which moves on while they are used.

import type { Principal } from '../../domain/identity/principal.ts';
import { SESSION_EXTENDED_EVERY_SECONDS, SESSION_IDLE_SECONDS } from '../../domain/identity/session.ts';
import { BoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { SessionCookie } from './session-cookie.ts';

/** How many recently extended sessions are remembered: a principal in memory may still have the end from before. */
const REMEMBERED_MAX = 10_000;
const AGAIN_MS = 60_000;

export class ConsoleSessions {
  readonly cookie: SessionCookie;
  private readonly extend: (sessionId: string) => Promise<void>;
  private readonly clock: Clock;
  private readonly extendedAtMs = new BoundedMap<string, number>(REMEMBERED_MAX);

  /** `extend` may fail: the session then ends a little earlier, or the next request extends it. */
  constructor(cookie: SessionCookie, extend: (sessionId: string) => Promise<void>, clock: Clock) {
    this.cookie = cookie;
    this.extend = extend;
    this.clock = clock;
  }

  /** A request was admitted by the session, whose end is moved on if it is time. */
  used({ credential, apiKeyId, expiresAtMs }: Principal): void {
    if (credential !== 'session' || expiresAtMs === null) return;
    const leftMs = expiresAtMs - this.clock.nowMs();
    if (leftMs > (SESSION_IDLE_SECONDS - SESSION_EXTENDED_EVERY_SECONDS) * 1000) return;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - (this.extendedAtMs.get(apiKeyId) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    this.extendedAtMs.set(apiKeyId, nowMs);
    void this.extend(apiKeyId);
  }
}
