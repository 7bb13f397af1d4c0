// Asks a provider whether it accepts a key: one free GET, through the transport and with the settings of its calls.

import { Buffer } from 'node:buffer';
import { isCallable, type Provider } from '../domain/models/provider.ts';
import { systemClock } from '../platform/clock.ts';
import type { UpstreamCall } from './call.ts';
import type { UpstreamFault } from './call-connection.ts';
import { type Credential, providerCredential } from './credential.ts';
import { type ReplyHeaders, replyHeader } from './http1/reply-head.ts';
import { complaintOf, EXAMINED_BYTES_MAX } from './key-complaint.ts';
import type { Providers } from './providers.ts';
import type { ReplyHandler } from './reply-handler.ts';

/**
 * `good`: the key is accepted, though the account may be out of credit. `rejected`: the key is not accepted.
 * `unverified`: there was an answer, and it proves nothing. `unreachable`: there was no answer, or one that no API
 * gives: a redirect (none is followed) or a page for browsers.
 */
export type VerificationResult = 'good' | 'rejected' | 'unverified' | 'unreachable';

export interface Verification {
  readonly result: VerificationResult;
  /** The status of the provider's reply; null: there was no reply. */
  readonly status: number | null;
  /**
   * In plain words, as the rest of a sentence that begins with "the provider". It quotes neither a body nor a
   * credential.
   */
  readonly reason: string;
}

const VERIFICATION_MS = 5_000;
/** Anthropic refuses every request without a version, whatever its key; the others do not look at it. */
export const ASKING_HEADERS = ['accept', 'application/json', 'anthropic-version', '2023-06-01'];

/** `credential`: the key to be verified, the operator's own if absent. Never rejects. */
export function verifyProvider(
  provider: Provider,
  through: Providers,
  credential: Credential = providerCredential(provider),
): Promise<Verification> {
  const ofToken = verificationOfToken(provider);
  if (ofToken !== null) return Promise.resolve(ofToken);
  const { promise, resolve } = Promise.withResolvers<Verification>();
  const answer = new Answer(provider, resolve);
  const timer = setTimeout(() => answer.onTimeout(), VERIFICATION_MS);
  try {
    answer.call = through.call(
      provider,
      {
        method: 'GET',
        api: 'verify',
        path: '/v1/models',
        query: '',
        providerModel: '',
        streamed: false,
        credential,
        headers: ASKING_HEADERS,
        body: null,
        keyRefusals: 'as_reply',
      },
      answer,
    );
  } catch (error) {
    resolve(unreachable(`cannot be called: ${(error as Error).message}`));
  }
  return promise.finally(() => clearTimeout(timer));
}

/** What is known without a call about a provider that takes tokens; null: the provider has to be asked. */
function verificationOfToken(provider: Provider): Verification | null {
  if (!isCallable(provider, systemClock.nowMs()))
    return { result: 'unverified', status: null, reason: 'takes a token, which jobs obtains; there is no valid one' };
  if (provider.requests?.isVerifiedByToken !== true) return null;
  return { result: 'good', status: null, reason: 'has a token that was obtained for it' };
}

class Answer implements ReplyHandler {
  call: UpstreamCall | null = null;
  private readonly provider: Provider;
  private readonly tell: (verification: Verification) => void;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private status = 0;

  constructor(provider: Provider, tell: (verification: Verification) => void) {
    this.provider = provider;
    this.tell = tell;
  }

  onReplyStart(status: number, headers: ReplyHeaders): void {
    this.status = status;
    // A list of models may be long, and nothing of it is needed.
    if (status >= 200 && status < 300) {
      this.call?.discard();
      this.tell(success(status, replyHeader(headers, 'content-type') ?? ''));
    }
  }

  onReplyData(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.bytes <= EXAMINED_BYTES_MAX) this.chunks.push(Buffer.from(chunk));
    else this.judge();
  }

  onReplyPause(): void {
    // Nothing is passed on before the end.
  }

  onReplyEnd(): void {
    this.judge();
  }

  /** Not called: `keyRefusals` asks for such a refusal as a reply. */
  onKeyRefused(status: number): void {
    this.tell({ result: 'rejected', status, reason: 'does not accept the key' });
  }

  onReplyFault(fault: UpstreamFault, error?: Error): void {
    if (this.status !== 0) this.judge();
    else this.tell(unreachable(reasonOfFault(fault, error)));
  }

  onTimeout(): void {
    this.call?.abort();
    if (this.status !== 0) this.judge();
    else this.tell(unreachable(`did not answer within ${VERIFICATION_MS / 1000} seconds`));
  }

  private judge(): void {
    this.call?.discard();
    const body = Buffer.concat(this.chunks);
    this.tell({ ...judgeRefusal(this.status, body, this.provider), status: this.status });
  }
}

function success(status: number, contentType: string): Verification {
  return contentType.startsWith('text/html')
    ? { result: 'unreachable', status, reason: 'answers with a page for browsers: base_url is not that of its API' }
    : { result: 'good', status, reason: 'accepts the key' };
}

function judgeRefusal(status: number, body: Buffer, { requests }: Provider): Omit<Verification, 'status'> {
  const complaint = complaintOf(status, body, requests?.errors);
  if (status === 402 || complaint === 'billing')
    return { result: 'good', reason: 'knows the key, but says that its account is out of credit' };
  if (status === 429)
    return { result: 'good', reason: 'knows the key, but refuses more requests now, or its quota is used up' };
  if (complaint === 'scope')
    return { result: 'unverified', reason: 'does not allow this key the call that verifies it; other calls may work' };
  if (status === 401 || complaint === 'key') return { result: 'rejected', reason: 'does not accept the key' };
  if (status === 403)
    return { result: 'unverified', reason: 'forbids the call that verifies the key; other calls may work' };
  if (status === 404 || status === 405)
    return { result: 'unverified', reason: `answers ${status}: base_url or the path that verifies may be wrong` };
  if (status >= 300 && status < 400)
    return { result: 'unreachable', reason: `redirects elsewhere (${status}): base_url is not that of its API` };
  if (status >= 500) return { result: 'unverified', reason: `cannot serve now (${status})` };
  return { result: 'unverified', reason: `answers ${status}` };
}

function unreachable(reason: string): Verification {
  return { result: 'unreachable', status: null, reason };
}

const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'has a name that is not known (ENOTFOUND): see base_url, and the resolver of this machine',
  EAI_AGAIN: 'has a name that cannot be looked up now (EAI_AGAIN): the resolver of this machine does not answer',
  ECONNREFUSED: 'does not listen at its address (ECONNREFUSED)',
  ENETUNREACH: 'is in a network that this machine cannot reach (ENETUNREACH): a proxy may be needed',
  EHOSTUNREACH: 'is on a machine that cannot be reached (EHOSTUNREACH)',
  ETIMEDOUT: 'does not answer at its address (ETIMEDOUT): a firewall may be in between, or a proxy may be needed',
  CERT_HAS_EXPIRED: 'has a certificate that has expired, or the clock of this machine is wrong',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet: the clock of this machine may be wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another name: see base_url',
};
const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** In plain words, as the rest of a sentence that begins with "the provider". */
export function reasonOfFault(fault: UpstreamFault, error: Error | undefined): string {
  const code = codeOf(error);
  if (UNTRUSTED.has(code)) return `has a certificate of an authority that is not trusted (${code}): see tls.ca`;
  const known = REASONS[code];
  if (known !== undefined) return known;
  if (fault === 'connect_failed')
    return error === undefined ? 'cannot be connected to' : `cannot be connected to: ${error.message}`;
  return 'ended the connection without an answer';
}

/**
 * The code of an error. Where several addresses of a name were tried, each has failed with its own; the first counts.
 */
function codeOf(error: Error | undefined): string {
  const all = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  const [first = error] = all;
  return (first as NodeJS.ErrnoException | undefined)?.code ?? '';
}
