// Forwards a report request to the jobs process and streams its answer, which the gateway neither computes nor parses.

import { type IncomingMessage, request } from 'node:http';
import { mintDelegationToken } from '../../domain/identity/delegation-token.ts';
import type { ReportDelegation } from '../../domain/reports/report-delegation.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HeaderList } from '../../http/response-headers.ts';
import type { Clock } from '../../platform/clock.ts';

export interface ReportForwarderOptions {
  /** The address where jobs serves reports. */
  readonly address: { readonly socketPath: string } | { readonly host: string; readonly port: number };
  /** null: delegation tokens cannot be made. */
  readonly delegationKey: Buffer | null;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  readonly limits?: Partial<ForwardingLimits>;
}

interface ForwardingLimits {
  /** The maximum of reports under way in this process. */
  readonly openMax: number;
  /**
   * The maximum for one organization, or for the platform, so that one organization's exports do not block the others.
   */
  readonly openOfOwnerMax: number;
  /**
   * How long jobs may take to begin its answer, including the time in its queue: a process that hangs accepts
   * connections and says nothing.
   */
  readonly headMs: number;
  /** The longest pause in an answer that has begun. */
  readonly stallMs: number;
  /** How long the client may read nothing. */
  readonly clientIdleMs: number;
  readonly tokenMs: number;
}

/**
 * The largest report takes two seconds on an idle machine (benchmarks/README.md), and a few may be in the queue before
 * it.
 */
const LIMITS: ForwardingLimits = {
  openMax: 32,
  openOfOwnerMax: 8,
  headMs: 15_000,
  stallMs: 30_000,
  clientIdleMs: 60_000,
  tokenMs: 60_000,
};
const RELAYED_HEADERS = [
  'content-type',
  'content-disposition',
  'retry-after',
  'x-should-retry',
  'x-request-id',
  'request-id',
] as const;
const NOT_ASCII = /[^\x21-\x7e]/gu;

export class ReportForwarder {
  private readonly options: ReportForwarderOptions;
  private readonly limits: ForwardingLimits;
  private readonly openByOwner = new Map<string, number>();
  /** The number of reports under way. */
  open = 0;

  constructor(options: ReportForwarderOptions) {
    this.options = options;
    this.limits = { ...LIMITS, ...options.limits };
  }

  /** Answers the exchange with the report, or refuses it. */
  forward(exchange: Exchange, delegation: ReportDelegation): void {
    if (exchange.closed) return;
    const { delegationKey, clock } = this.options;
    const target = targetOf(exchange);
    const token = mintDelegationToken(
      delegationKey,
      delegation,
      { method: 'GET', target },
      clock.nowMs() + this.limits.tokenMs,
    );
    if (token === null) return exchange.refuse({ kind: 'delegation_token_unavailable' });
    const owner = delegation.scope.organizationId ?? 'platform';
    if (!this.enter(owner)) return exchange.refuse({ kind: 'reports_unavailable' });
    this.ask(exchange, target, token, () => this.leave(owner));
  }

  private enter(owner: string): boolean {
    const ofOwner = this.openByOwner.get(owner) ?? 0;
    if (this.open >= this.limits.openMax || ofOwner >= this.limits.openOfOwnerMax) return false;
    this.open += 1;
    this.openByOwner.set(owner, ofOwner + 1);
    return true;
  }

  private leave(owner: string): void {
    this.open -= 1;
    const rest = (this.openByOwner.get(owner) ?? 1) - 1;
    if (rest === 0) this.openByOwner.delete(owner);
    else this.openByOwner.set(owner, rest);
  }

  private ask(exchange: Exchange, target: string, token: string, leave: () => void): void {
    const { address, log } = this.options;
    const { headMs, stallMs, clientIdleMs } = this.limits;
    const headers = {
      authorization: `Delegation ${token}`,
      accept: exchange.header('accept') ?? '*/*',
      connection: 'close',
      'x-request-id': exchange.id,
    };
    // Every report uses a new connection: reports are few, and a kept connection may be dead.
    const call = request({ ...address, method: 'GET', path: target, headers, agent: false });
    const fail = (error: unknown): void => {
      if (!exchange.closed) log.warn({ err: error }, 'jobs did not answer a report');
      if (exchange.status === 0) exchange.refuse({ kind: 'reports_unavailable' });
      else exchange.cut();
    };
    exchange.watchClient({ onClientLeft: () => call.destroy() });
    const headDeadline = setTimeout(() => call.destroy(new Error(`no answer began within ${headMs} ms`)), headMs);
    call.on('timeout', () => call.destroy(new Error('an answer stood still on its way')));
    call.on('error', fail);
    call.on('response', (response) => {
      clearTimeout(headDeadline);
      // The socket's timeout cannot tell waiting for jobs from waiting for the client.
      call.setTimeout(stallMs);
      response.on('pause', () => call.setTimeout(clientIdleMs));
      response.on('resume', () => call.setTimeout(stallMs));
      response.on('error', fail);
      // 401 means that jobs has another key, or that the token came too late.
      if (response.statusCode === 401) {
        call.destroy();
        exchange.refuse({ kind: 'delegation_token_unavailable' });
      } else {
        relay(response, exchange);
      }
    });
    call.on('close', () => {
      clearTimeout(headDeadline);
      leave();
    });
    call.end();
  }
}

/** node:http accepts ASCII only. Escaping what the client left unescaped does not change its meaning. */
function targetOf({ path, query }: Exchange): string {
  return `${path}${query === '' ? '' : '?'}${query}`.toWellFormed().replace(NOT_ASCII, encodeURIComponent);
}

function relay(response: IncomingMessage, exchange: Exchange): void {
  const length = response.headers['content-length'];
  const totalBytes = length === undefined ? null : Number(length);
  const headers: HeaderList = RELAYED_HEADERS.flatMap((name) => {
    const value = response.headers[name];
    return typeof value === 'string' ? [name, value] : [];
  });
  exchange.cork(() => exchange.begin(response.statusCode ?? 500, headers));
  response.on('data', (piece: Buffer) => {
    exchange.cork(() => {
      const hasRoom = totalBytes === null ? exchange.write(piece) : exchange.writeOfTotal(piece, totalBytes);
      if (hasRoom) return;
      response.pause();
      exchange.onWritable(() => response.resume());
    });
  });
  // With a content length the last byte may have ended the answer already.
  response.on('end', () => exchange.cork(() => exchange.end()));
}
