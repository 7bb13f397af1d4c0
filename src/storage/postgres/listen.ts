// Listens for notifications and passes them to handlers by channel. A broken connection is replaced, after growing
// delays.

import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../platform/log.ts';

export interface Listener {
  /** Resolves when the first connection listens, or when the listener was closed. */
  readonly listening: Promise<void>;
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly url: string;
  readonly log: Log;
  /** Handlers by channel. A handler must not throw. */
  readonly channels: Readonly<Record<string, (payload: string) => void>>;
  /**
   * Called after each connection but the first. Notifications may have been missed, so whatever depends on them must be
   * reloaded.
   */
  readonly onReconnect: () => void;
}

const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** A connection whose other end vanished silently reports nothing, so it is tested now and then. */
const HEARTBEAT_MS = 15_000;
const ANSWER_TIMEOUT_MS = 10_000;
/** A connection whose other end is silent would otherwise wait for ever for its end. */
const END_TIMEOUT_MS = 1_000;

export function createListener(options: ListenerOptions): Listener {
  const closed = new AbortController();
  let markListening = (): void => {};
  const listening = new Promise<void>((resolve) => {
    markListening = resolve;
  });
  const running = keepListening(options, closed.signal, markListening).finally(() => markListening());
  return {
    listening,
    async close() {
      closed.abort();
      await running;
    },
  };
}

async function keepListening(options: ListenerOptions, closed: AbortSignal, markListening: () => void): Promise<void> {
  let backoffMs = BACKOFF_MIN_MS;
  let connections = 0;
  while (!closed.aborted) {
    try {
      await listenOnce(options, closed, () => {
        backoffMs = BACKOFF_MIN_MS;
        connections += 1;
        if (connections === 1) markListening();
        else options.onReconnect();
      });
    } catch (error) {
      if (closed.aborted) return;
      options.log.warn({ err: error, retryInMs: backoffMs }, 'the connection that listens for changes broke');
    }
    await sleep(backoffMs, undefined, { signal: closed }).catch(() => {});
    backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
  }
}

/** Listens until the connection breaks (throws) or the listener is closed (returns). */
async function listenOnce(options: ListenerOptions, closed: AbortSignal, onListening: () => void): Promise<void> {
  const socket = new Socket();
  const giveUpSoon = (): NodeJS.Timeout => setTimeout(() => socket.destroy(), END_TIMEOUT_MS).unref();
  closed.addEventListener('abort', giveUpSoon, { once: true });
  const client = new pg.Client({
    stream: () => socket,
    connectionString: options.url,
    application_name: 'tollgate listener',
    connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
  });
  const broken = new Promise<never>((_, reject) => {
    client.once('error', reject);
    client.once('end', () => reject(new Error('Postgres closed the connection')));
  });
  broken.catch(() => {}); // `broken` may reject when nobody awaits it any more
  client.on('error', () => {}); // later errors of the same connection
  client.on('notification', ({ channel, payload }) => options.channels[channel]?.(payload ?? ''));
  try {
    await Promise.race([client.connect(), broken]);
    for (const channel of Object.keys(options.channels))
      await client.query(`LISTEN ${client.escapeIdentifier(channel)}`);
    onListening();
    while (!closed.aborted) {
      await Promise.race([sleep(HEARTBEAT_MS, undefined, { signal: closed }).catch(() => {}), broken]);
      if (!closed.aborted) await client.query('SELECT 1');
    }
  } finally {
    closed.removeEventListener('abort', giveUpSoon);
    const ending = giveUpSoon();
    await client.end().catch(() => {});
    clearTimeout(ending);
  }
}
