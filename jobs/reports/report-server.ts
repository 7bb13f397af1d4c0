// Serves the reports that gateways forward: checks the delegation token, answers in the platform envelope and streams
// long answers. It listens on a socket of this installation, or on REPORTS_LISTEN.

import { renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { verifyDelegationToken } from '../../src/domain/identity/delegation-token.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { renderRefusal } from '../../src/domain/refusals/render.ts';
import type { FindOwnerNames } from '../../src/domain/reports/owners.ts';
import type { ReportDelegation } from '../../src/domain/reports/report-delegation.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import type { Counter, MetricsRegistry } from '../../src/platform/metrics.ts';
import type { ReportsAddress } from '../../src/reports-settings.ts';
import { type ClickHouseReader, type ClickHouseSettings, readingFor } from '../../src/storage/clickhouse/clickhouse.ts';
import { ReportStoreUnavailable } from '../../src/storage/clickhouse/reports/select-report.ts';
import type { SealedDays } from '../../src/storage/clickhouse/sealed-days.ts';
import { Backoff } from '../scheduling/backoff.ts';
import { StoppableSleep } from '../scheduling/stoppable-sleep.ts';
import { answerReport, type ReportAnswer } from './answer-report.ts';
import type { FindEndedExecution } from './request-details.ts';
import { SemaphoreFull, StatementSemaphore } from './statement-semaphore.ts';

export interface ReportServerOptions {
  readonly address: ReportsAddress;
  readonly delegationKey: Buffer;
  /** The invoice issuer that cost exports name. */
  readonly issuer: string;
  readonly ownerNames: FindOwnerNames;
  readonly endedExecution: FindEndedExecution;
  /** null while ClickHouse is away. */
  readonly clickhouse: () => ClickHouseReader | null;
  /** null: there are no sealed days, and reports read the facts alone. */
  readonly sealedDays: () => SealedDays | null;
  /** How many statements may run at once. */
  readonly atOnce: number;
  /** Settings of every statement. */
  readonly settings: ClickHouseSettings;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
}

const WAITING_MAX = 64;
/**
 * Pieces that are read before the response head is sent: a CSV's first line and its first rows. A store that is away is
 * noticed by then.
 */
const PIECES_AHEAD = 2;
const AUTHORIZATION = /^Delegation (\S+)$/;

export class ReportServer {
  private readonly options: ReportServerOptions;
  private readonly server: Server;
  private readonly semaphore: StatementSemaphore;
  private readonly answers: Counter<readonly ['report', 'status']>;
  private readonly sleep = new StoppableSleep();
  private closed = false;
  private listening: Promise<void> = Promise.resolve();
  /** Inode of the socket file that this server made; null: it listens on a port, or not yet. */
  private socketInode: number | null = null;

  constructor(options: ReportServerOptions) {
    this.options = options;
    this.semaphore = new StatementSemaphore({ atOnce: options.atOnce, waitingMax: WAITING_MAX });
    this.answers = options.metrics.counter('tollgate_reports_total', 'Reports answered, by report and status.', [
      'report',
      'status',
    ]);
    this.server = createServer((request, response) => {
      this.serve(request, response).catch((fault: unknown) => {
        options.log.error({ err: fault }, 'fault while answering a report');
        if (response.headersSent) response.destroy();
        else refuse(request, response, { kind: 'internal_error' });
      });
    });
  }

  /**
   * Retries until it listens, because the other work of jobs does not depend on it. Resolves with the first success or
   * failure.
   */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.listening = this.listenUntilItWorks(resolve);
    });
  }

  /** The port of a server that was given port 0. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Also ends the reports under way, after `limitMs`. */
  async close(limitMs: number): Promise<void> {
    this.closed = true;
    this.sleep.stop();
    await this.listening;
    const cut = setTimeout(() => this.server.closeAllConnections(), limitMs);
    const ended = new Promise((resolve) => this.server.close(resolve));
    this.removeSocket();
    await ended;
    clearTimeout(cut);
  }

  private removeSocket(): void {
    const { address } = this.options;
    if (!('socketPath' in address) || this.socketInode === null) return;
    const present = statSync(address.socketPath, { throwIfNoEntry: false })?.ino;
    if (present === this.socketInode) rmSync(address.socketPath);
  }

  private async listenUntilItWorks(tried: () => void): Promise<void> {
    const backoff = new Backoff({ name: 'listening for reports', log: this.options.log });
    while (!this.closed) {
      try {
        await this.listen();
        backoff.succeeded();
        break;
      } catch (error) {
        const waitMs = backoff.failed(error);
        tried();
        await this.sleep.forMs(waitMs);
      }
    }
    tried();
  }

  private async listen(): Promise<void> {
    const { address } = this.options;
    if (!('socketPath' in address)) return this.listenAt(address);
    // A closing server removes the socket path that it listened on. An earlier jobs process that closes later must not
    // remove this server's socket, so each process listens on a path of its own and renames the file afterwards. A
    // process with the same pid that was killed may have left its file behind.
    const path = join(dirname(address.socketPath), `r.${process.pid.toString(36)}`);
    rmSync(path, { force: true });
    await this.listenAt({ path });
    this.socketInode = statSync(path).ino;
    renameSync(path, address.socketPath);
  }

  private listenAt(address: { readonly path: string } | { readonly host: string; readonly port: number }) {
    return new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(address, () => {
        this.server.off('error', reject);
        resolve();
      });
    });
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: target = '' } = request;
    const { delegationKey, clock, log } = this.options;
    const [, token = ''] = AUTHORIZATION.exec(request.headers.authorization ?? '') ?? [];
    const delegation = verifyDelegationToken(delegationKey, token, { method, target }, clock.nowMs());
    if (typeof delegation === 'string') {
      log.warn({ reason: delegation }, 'a report request has no valid delegation token');
      return refuse(request, response, { kind: 'unauthorized' });
    }
    let answer: ReportAnswer | Refusal;
    try {
      answer = await this.answer(request, response, delegation);
    } catch (error) {
      if (response.destroyed) return;
      answer = this.refusalFor(error);
    }
    if (response.destroyed) return;
    if ('kind' in answer) refuse(request, response, answer);
    else await send(response, answer);
    this.answers.labels(delegation.report, String(response.statusCode)).increment();
  }

  private async answer(
    request: IncomingMessage,
    response: ServerResponse,
    delegation: ReportDelegation,
  ): Promise<ReportAnswer | Refusal> {
    const { clickhouse, sealedDays, delegationKey, issuer, ownerNames, endedExecution, clock, settings } = this.options;
    const client = clickhouse();
    if (client === null) return { kind: 'reports_unavailable' };
    const left = disconnectSignal(response);
    const semaphore = { run: <T>(work: () => Promise<T>): Promise<T> => this.semaphore.run(left, work) };
    const source = {
      client: readingFor(client, left, settings),
      sealedDays: sealedDays(),
      semaphore,
      delegationKey,
      issuer,
      ownerNames,
      endedExecution,
    };
    const [, query = ''] = /\?(.*)$/s.exec(request.url ?? '') ?? [];
    const answer = await answerReport(source, {
      delegation,
      query,
      accept: request.headers.accept ?? '',
      nowMs: clock.nowMs(),
    });
    if ('kind' in answer || typeof answer.body === 'string') return answer;
    return { ...answer, body: await readAhead(answer.body) };
  }

  private refusalFor(error: unknown): Refusal {
    if (error instanceof SemaphoreFull) return { kind: 'reports_unavailable' };
    if (error instanceof ReportStoreUnavailable) {
      this.options.log.warn({ err: error }, 'a report could not be read');
      return { kind: 'reports_unavailable' };
    }
    this.options.log.error({ err: error }, 'fault while reading a report');
    return { kind: 'internal_error' };
  }
}

/** Aborts when the reader disconnects before everything is sent. */
function disconnectSignal(response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  const leave = (): void => leaving.abort(new Error('the reader of the report has left'));
  if (response.destroyed) leave();
  else response.once('close', leave);
  return leaving.signal;
}

function refuse({ headers: asked }: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  // The request is the gateway's, and no refusal of a report contains a public address.
  const context = { requestId: String(asked['x-request-id'] ?? ''), publicUrl: '' };
  const { status, headers, body } = renderRefusal(refusal, 'platform', context);
  response.writeHead(status, { ...Object.fromEntries(headers), 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function send(response: ServerResponse, { contentType, fileName, body }: ReportAnswer): Promise<void> {
  const headers = {
    'content-type': contentType,
    ...(fileName === null ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }),
  };
  if (typeof body === 'string') {
    response.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) });
    response.end(body);
    return;
  }
  response.writeHead(200, headers);
  // If reading fails, the connection is cut, so that a reader does not take the body for complete. A reader that
  // disconnects ends the reading.
  await pipeline(Readable.from(body), response).catch((fault: NodeJS.ErrnoException) => {
    if (fault.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw fault;
  });
}

/** The same pieces, with the first ones read already. */
async function readAhead(pieces: AsyncIterable<string>): Promise<AsyncIterable<string>> {
  const rest = pieces[Symbol.asyncIterator]();
  const read: string[] = [];
  for (let count = 0; count < PIECES_AHEAD; count++) {
    const next = await rest.next();
    if (next.done === true) break;
    read.push(next.value);
  }
  return (async function* () {
    try {
      yield* read;
      for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
    } finally {
      await rest.return?.();
    }
  })();
}
