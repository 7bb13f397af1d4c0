// Obtains access tokens for providers that take a token instead of a key, and renews each token before it expires. Only
// one process of an installation works on a token at a time. Gateways are notified of each new token; they never wait
// for one.

import type { TokenSecret } from '../../src/domain/configuration/schema/token-schema.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { Counter, MetricsRegistry } from '../../src/platform/metrics.ts';
import { providerSecretName } from '../../src/storage/postgres/catalog/catalog-store.ts';
import {
  claimDueTokens,
  type DueToken,
  keepToken,
  tokenFailed,
  tokenSecretName,
} from '../../src/storage/postgres/catalog/provider-tokens.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import type { SecretBox } from '../../src/storage/postgres/secret-box.ts';
import type { ProxySettings } from '../../src/upstream/proxy-of.ts';
import { readTlsFiles } from '../../src/upstream/tls-files.ts';
import { obtainToken, type TokenAnswer } from '../../src/upstream/tokens/obtain-token.ts';
import { formPoster } from '../../src/upstream/tokens/post-form.ts';
import { BackgroundLoop } from '../scheduling/background-loop.ts';

const POLL_MS = 2_000;
/** The share of its life after which a token is renewed. */
const RENEWED_AT = 0.8;
const RETRY_SECONDS = 5;
const RETRY_SECONDS_MAX = 300;
/** A token is not renewed sooner, however short its life is: each new token makes every gateway reload its catalog. */
const RENEWED_AFTER_SECONDS_MIN = 5;

export interface TokenRenewerParts {
  readonly postgres: Postgres;
  readonly box: SecretBox;
  readonly proxies: ProxySettings;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

export class TokenRenewer {
  private readonly parts: TokenRenewerParts;
  private readonly renewals: Counter<readonly ['provider', 'result']>;
  private readonly loop: BackgroundLoop;
  private readonly underWay = new Set<Promise<void>>();

  constructor(parts: TokenRenewerParts) {
    this.parts = parts;
    this.renewals = parts.metrics.counter(
      'tollgate_provider_token_renewals_total',
      'Tokens of providers that were to be obtained, by result; `failed` rising is an alarm.',
      ['provider', 'result'],
    );
    const step = (): Promise<number> => this.beginDue();
    this.loop = new BackgroundLoop({ name: 'looking for tokens that are due', log: parts.log, step });
  }

  start(): void {
    this.loop.start();
  }

  /** Waits for attempts under way, which are bounded. */
  async stop(): Promise<void> {
    await this.loop.stop();
    await Promise.all(this.underWay);
  }

  private async beginDue(): Promise<number> {
    for (const due of await claimDueTokens(this.parts.postgres)) {
      const attempt = this.attempt(due).finally(() => this.underWay.delete(attempt));
      this.underWay.add(attempt);
    }
    return POLL_MS;
  }

  private async attempt(due: DueToken): Promise<void> {
    const { log, postgres } = this.parts;
    const provider = due.providerId;
    try {
      const answer = await this.obtain(due);
      this.renewals.labels(provider, answer.ok ? 'obtained' : 'failed').increment();
      if (!answer.ok) {
        await this.fail(due, answer.reason);
        return;
      }
      const { token, lifeSeconds } = answer;
      const sealed = this.parts.box.seal(token, tokenSecretName(provider));
      const renewAfterSeconds = Math.max(lifeSeconds * RENEWED_AT, RENEWED_AFTER_SECONDS_MIN);
      await keepToken(postgres, due, { sealed, lifeSeconds, renewAfterSeconds });
      if (due.failures > 0) log.info({ provider, failures: due.failures }, 'a token of a provider was obtained again');
    } catch (error) {
      // The claim expires, and the token is tried again.
      log.warn({ err: error, provider }, 'the result of an attempt to obtain a token could not be recorded');
    }
  }

  private async obtain({ providerId, settings, secretSealed, proxy, tls }: DueToken): Promise<TokenAnswer> {
    let secret: TokenSecret;
    try {
      secret = JSON.parse(this.parts.box.open(secretSealed, providerSecretName(providerId))) as TokenSecret;
    } catch (error) {
      // The message of JSON.parse is not used, because it would quote the secret.
      return { ok: false, reason: error instanceof SyntaxError ? 'the stored secret is damaged' : String(error) };
    }
    const post = formPoster({ proxy, proxies: this.parts.proxies, tls: readTlsFiles(providerId, tls ?? {}) });
    return obtainToken({ settings, secret, clock: this.parts.clock, post });
  }

  private async fail(due: DueToken, failure: string): Promise<void> {
    const { log, postgres } = this.parts;
    const retryAfterSeconds = Math.min(RETRY_SECONDS_MAX, RETRY_SECONDS * 2 ** due.failures);
    const leftSeconds = Math.round(await tokenFailed(postgres, due, { failure, retryAfterSeconds }));
    if (due.failures > 0) return;
    log.error(
      { provider: due.providerId, reason: failure, present_token_seconds: leftSeconds },
      'a token for a provider could not be obtained; the present one serves until its end, if there is one',
    );
  }
}
