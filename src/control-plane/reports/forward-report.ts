// Has jobs answer a report and streams its answer through (DESIGN 5): nothing of a report is computed or parsed in a
// gateway.

import { type IncomingMessage, request } from 'node:http';
import { mintDelegationToken } from '../../domain/identity/delegation-token.ts';
import type { ReportDelegation } from '../../domain/reports/report-delegation.ts';
import type { Exchange, HeaderList } from '../../http/exchange.ts';
import type { Clock } from '../../platform/clock.ts';

export interface ReportForwarderOptions {
  /** Where jobs serves reports. */
  readonly address: { readonly socketPath: string } | { readonly host: string; readonly port: number };
  /** null: no token can be made. */
  readonly delegationKey: Buffer | null;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  readonly limits?: Partial<ForwardingLimits>;
}

interface ForwardingLimits {
  /** Reports under way in this process. */
  readonly openMax: number;
  /** Of them, those of one organization, or of the platform: nobody's exports keep everybody else from theirs. */
  readonly openOfOwnerMax: number;
  /**
   * How long jobs may take until its answer begins, waiting for its turn there included: a process that stands still
   * takes connections and says nothing.
   */
  readonly headMs: number;
  /** How long nothing may come of an answer that has begun. */
  readonly stallMs: number;
  /** How long the client may take nothing. */
  readonly clientIdleMs: number;
  readonly tokenMs: number;
}

/** The largest report takes two seconds on a quiet machine (benchmarks/README.md), and a few may be before it. */
const LIMITS: ForwardingLimits = {
  openMax: 32,
  openOfOwnerMax: 8,
  headMs: 15_000,
  stallMs: 30_000,
  clientIdleMs: 60_000,
  tokenMs: 60_000,
};
const RELAYED_HEADERS = ['content-type', 'content-disposition', 'retry-after', 'x-should-retry'] as const;
const NOT_ASCII = /[^\x21-\x7e]/gu;

export class ReportForwarder {
  readonly #options: ReportForwarderOptions;
  readonly #limits: ForwardingLimits;
  readonly #openByOwner = new Map<string, number>();
  #open = 0;

  constructor(options: ReportForwarderOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
  }

  /** Reports under way. */
  get open(): number {
    return this.#open;
  }

  /** Sees to the exchange's end by itself. */
  forward(exchange: Exchange, delegation: ReportDelegation): void {
    if (exchange.closed) return;
    const { delegationKey, clock } = this.#options;
    const target = targetOf(exchange);
    const token = mintDelegationToken(
      delegationKey,
      delegation,
      { method: 'GET', target },
      clock.nowMs() + this.#limits.tokenMs,
    );
    if (token === null) return exchange.refuse({ kind: 'delegation_token_unavailable' });
    const owner = delegation.scope.organizationId ?? 'platform';
    if (!this.#enter(owner)) return exchange.refuse({ kind: 'reports_unavailable' });
    this.#ask(exchange, target, token, () => this.#leave(owner));
  }

  #enter(owner: string): boolean {
    const ofOwner = this.#openByOwner.get(owner) ?? 0;
    if (this.#open >= this.#limits.openMax || ofOwner >= this.#limits.openOfOwnerMax) return false;
    this.#open += 1;
    this.#openByOwner.set(owner, ofOwner + 1);
    return true;
  }

  #leave(owner: string): void {
    this.#open -= 1;
    const rest = (this.#openByOwner.get(owner) ?? 1) - 1;
    if (rest === 0) this.#openByOwner.delete(owner);
    else this.#openByOwner.set(owner, rest);
  }

  #ask(exchange: Exchange, target: string, token: string, leave: () => void): void {
    const { address, log } = this.#options;
    const { headMs, stallMs, clientIdleMs } = this.#limits;
    const headers = {
      authorization: `Delegation ${token}`,
      accept: exchange.header('accept') ?? '*/*',
      connection: 'close',
    };
    // A connection each: reports are few, and one that was kept can be dead when it is used again.
    const call = request({ ...address, method: 'GET', path: target, headers, agent: false });
    const fail = (why: unknown): void => {
      if (!exchange.closed) log.warn({ err: why }, 'jobs did not answer a report');
      if (exchange.status === 0) exchange.refuse({ kind: 'reports_unavailable' });
      else exchange.cut();
    };
    exchange.watchClient({ onClientLeft: () => call.destroy() });
    const headDeadline = setTimeout(() => call.destroy(new Error(`no answer began within ${headMs} ms`)), headMs);
    call.on('timeout', () => call.destroy(new Error('an answer stood still on its way')));
    call.on('error', fail);
    call.on('response', (response) => {
      clearTimeout(headDeadline);
      // Of the socket: waiting for jobs and waiting for the client look alike to it.
      call.setTimeout(stallMs);
      response.on('pause', () => call.setTimeout(clientIdleMs));
      response.on('resume', () => call.setTimeout(stallMs));
      response.on('error', fail);
      // What jobs takes for no token of ours was not made with its key, or came too late.
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

/** node:http takes nothing but ASCII; what a client left unescaped is escaped, which reads the same. */
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
  response.on('end', () => {
    // With a length, the last byte is the end.
    if (totalBytes === null) exchange.cork(() => exchange.end());
  });
}
