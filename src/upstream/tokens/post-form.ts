// POSTs a form to a token endpoint by undici, with the proxies and certificate authorities of calls to providers.

import { systemClock } from '../../platform/clock.ts';
import { UPSTREAM_TIMEOUTS } from '../connection-limits.ts';
import { NameLookups } from '../http1/name-lookups.ts';
import { type ProxySettings, proxyOf } from '../proxy-of.ts';
import type { TlsOptions } from '../tls-files.ts';
import { UndiciOrigin } from '../undici/undici-origin.ts';
import { reasonOfFault } from '../verify-provider.ts';
import type { FormAnswer, PostForm } from './obtain-token.ts';

const ANSWER_MS_MAX = 10_000;
const ANSWER_BYTES_MAX = 65_536;

export interface FormParams {
  /** The proxy in the provider's configuration; undefined: it names none. */
  readonly proxy: string | undefined;
  readonly proxies: ProxySettings;
  readonly tls: TlsOptions;
  /** How long the answer may take, from the first step of connecting. */
  readonly withinMs?: number;
}

/** A token is obtained about once an hour, so no connection is kept. */
export function formPoster({ proxy, proxies, tls, withinMs = ANSWER_MS_MAX }: FormParams): PostForm {
  return async (url, form) => {
    const { origin, pathname, protocol } = new URL(url);
    const connections = new UndiciOrigin({
      origin,
      timeouts: UPSTREAM_TIMEOUTS,
      // Plain http is allowed to this machine alone (token-schema.ts), and a proxy would read the secret.
      proxy: protocol === 'http:' ? null : proxyOf(origin, proxy, proxies),
      http: 1,
      tls: tls.ca === undefined ? {} : { ca: tls.ca },
      names: new NameLookups(systemClock),
    });
    try {
      return await post(connections, pathname, form, withinMs);
    } finally {
      await connections.close();
    }
  };
}

function post(
  connections: UndiciOrigin,
  path: string,
  form: Readonly<Record<string, string>>,
  withinMs: number,
): Promise<FormAnswer> {
  const { promise, resolve } = Promise.withResolvers<FormAnswer>();
  const chunks: Buffer[] = [];
  let status = 0;
  let bytes = 0;
  const end = (): void => resolve({ status, body: Buffer.concat(chunks).toString('utf8') });
  const call = connections.call(
    {
      method: 'POST',
      path,
      headers: ['content-type', 'application/x-www-form-urlencoded', 'accept', 'application/json'],
      body: Buffer.from(new URLSearchParams(form).toString()),
    },
    {
      onReplyStart: (found) => {
        status = found;
      },
      onReplyData: (chunk) => {
        bytes += chunk.length;
        if (bytes <= ANSWER_BYTES_MAX) chunks.push(Buffer.from(chunk));
        else giveUp('answered with more than a token can be');
      },
      onReplyPause: () => undefined,
      onReplyEnd: end,
      onKeyRefused: end,
      onReplyFault: (fault, error) => resolve({ status: null, reason: reasonOfFault(fault, error) }),
    },
    { wordings: null, onFault: () => undefined, onKeyRefused: () => undefined },
  );
  const giveUp = (reason: string): void => {
    call.abort();
    resolve({ status: null, reason });
  };
  const timer = setTimeout(giveUp, withinMs, `did not answer within ${withinMs / 1000} seconds`);
  return promise.finally(() => clearTimeout(timer));
}
