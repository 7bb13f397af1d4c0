// Runs planned exchanges, many at once, against one gateway address, and keeps those whose bytes may still be seen.

import { Clients } from './client.ts';
import { type Exchange, type PlanParams, planExchange } from './plan.ts';
import type { Providers } from './providers.ts';
import type { Watch } from './watch.ts';

/**
 * An exchange that is over is forgotten after this many others. An exchange whose client left may still be on its way
 * to a provider.
 */
const KEPT_AFTER_END = 300;
const KEPT_AFTER_LEAVING_MS = 20_000;
const SAVED_IDS_MAX = 50;
const EXECUTIONS_MAX = 100;
const OWNERS_MAX = 100_000;

export interface LoadOptions {
  readonly seed: number;
  readonly from: number;
  readonly exchanges: number;
  readonly atOnce: number;
  readonly port: number;
  readonly isLight: boolean;
  readonly ownTenants: readonly number[];
  readonly isGuarded: boolean;
  /** Ends the run early when this returns true. */
  readonly stopEarly?: () => boolean;
}

export class Load {
  readonly open: Map<number, Exchange>;
  private readonly watch: Watch;
  private readonly providers: Providers;
  private readonly ended: Exchange[] = [];
  private readonly left: { readonly exchange: Exchange; readonly atMs: number }[] = [];
  /** By tenant: ids of responses that it has received completely. */
  readonly saved = new Map<number, string[]>();
  /** By tenant: the executions that a provider served most recently. */
  readonly executions = new Map<number, { readonly index: number; readonly executionId: string }[]>();
  /** The tenant of each of the newest executions. */
  readonly ownerOf = new Map<string, number>();

  constructor(open: Map<number, Exchange>, watch: Watch, providers: Providers) {
    this.open = open;
    this.watch = watch;
    this.providers = providers;
  }

  async run(options: LoadOptions): Promise<void> {
    const { from, exchanges, atOnce, port, stopEarly } = options;
    const clients = new Clients(port, this.watch, this.providers.ownKeys);
    let next = from;
    const work = async (): Promise<void> => {
      while (next < from + exchanges && stopEarly?.() !== true) {
        const exchange = this.plan({ ...options, index: next++ });
        const behind =
          exchange.client === 'pipelines' && next < from + exchanges ? [this.plan({ ...options, index: next++ })] : [];
        await this.runOne(clients, [exchange, ...behind]);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    this.providers.release(Number.POSITIVE_INFINITY);
    clients.close();
  }

  private plan(params: PlanParams): Exchange {
    const exchange = planExchange(params, this.saved);
    this.open.set(exchange.index, exchange);
    return exchange;
  }

  private async runOne(clients: Clients, exchanges: readonly Exchange[]): Promise<void> {
    const { watch } = this;
    const [first] = exchanges;
    if (first !== undefined && first.client !== 'stays') watch.count(watch.faults, `client ${first.client}`);
    const end = await clients.run(exchanges);
    watch.count(watch.answers, end);
    for (const exchange of exchanges) {
      watch.exchanges += 1;
      if (end === 'whole') this.finish(exchange);
      else this.left.push({ exchange, atMs: performance.now() });
    }
    this.providers.release(watch.exchanges);
    this.forget();
  }

  private finish(exchange: Exchange): void {
    const { kind, tenant, replyMark, replies } = exchange;
    this.ended.push(exchange);
    this.keepExecution(exchange);
    if (
      (kind !== 'responses' && kind !== 'continued') ||
      replies.at(-1)?.status !== 200 ||
      replies.at(-1)?.whole !== true
    )
      return;
    keep(this.saved, tenant, `resp_${replyMark}`, SAVED_IDS_MAX);
  }

  private keepExecution({ index, tenant, executionId, replies }: Exchange): void {
    if (executionId === '') return;
    if (this.ownerOf.has(executionId))
      this.watch.violation('foreign mark', `execution ${executionId} twice, the second time for exchange ${index}`);
    if (this.ownerOf.size >= OWNERS_MAX) this.ownerOf.clear();
    this.ownerOf.set(executionId, tenant);
    if (replies.some(({ status, whole }) => status === 200 && whole))
      keep(this.executions, tenant, { index, executionId }, EXECUTIONS_MAX);
  }

  private forget(): void {
    while (this.ended.length > KEPT_AFTER_END) this.open.delete(this.ended.shift()?.index ?? 0);
    const beforeMs = performance.now() - KEPT_AFTER_LEAVING_MS;
    while ((this.left[0]?.atMs ?? Number.POSITIVE_INFINITY) < beforeMs)
      this.open.delete(this.left.shift()?.exchange.index ?? 0);
  }
}

function keep<T>(lists: Map<number, T[]>, tenant: number, value: T, most: number): void {
  let list = lists.get(tenant);
  if (list === undefined) lists.set(tenant, (list = []));
  list.push(value);
  if (list.length > most) list.shift();
}
