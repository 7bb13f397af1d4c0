// The data plane in the test's own process behind the real HTTP front, with real sockets to clients and providers. Its
// stores belong to the test, so that any look-up can be made to wait and everything that was held or recorded can be
// counted.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Principal } from '../../src/domain/identity/principal.ts';
import type { Catalog, Model } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import { BYOK_DEFAULTS } from '../../src/domain/own-keys/byok-settings.ts';
import type { LeaseAnswer, Quota } from '../../src/domain/quotas/lease.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';
import type { CountTokensInput } from '../../src/domain/usage/count-tokens-task.ts';
import { COUNTS } from '../../src/generation/admission/admit.ts';
import type { LeaseStore } from '../../src/generation/admission/leases/lease-store.ts';
import { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import { OrganizationQueues } from '../../src/generation/admission/organization-queues.ts';
import { type SavedResponseAnswer, SavedResponses } from '../../src/generation/catalog/saved-responses.ts';
import { prepareCatalog } from '../../src/generation/catalog/serving-catalog.ts';
import { GenerationMetrics } from '../../src/generation/execution/generation-metrics.ts';
import { RecordJournal, type RecordSink } from '../../src/generation/execution/record-journal.ts';
import { RefusedRequests } from '../../src/generation/execution/refused-requests.ts';
import { ExternalDetectors } from '../../src/generation/guardrails/external-detectors.ts';
import { GuardrailMetrics } from '../../src/generation/guardrails/guardrail-metrics.ts';
import type { PoliciesInForce } from '../../src/generation/guardrails/policies-in-force.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { HeldOwnKeys } from '../../src/generation/own-keys/held-own-keys.ts';
import { Cooldowns } from '../../src/generation/pauses/cooldowns.ts';
import type { DataPlane } from '../../src/generation/plane.ts';
import { OpenRelays } from '../../src/generation/reply/open-relays.ts';
import type { RelayContext } from '../../src/generation/reply/relay-params.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { Classifier } from '../../src/generation/routing/classifier.ts';
import { Router } from '../../src/generation/routing/router.ts';
import { RoutingMetrics } from '../../src/generation/routing/routing-metrics.ts';
import { SharedTurns } from '../../src/generation/routing/shared-turns.ts';
import type { TurnStore } from '../../src/generation/routing/turn-store.ts';
import type { Front } from '../../src/http/fronts/front.ts';
import { Server } from '../../src/http/server.ts';
import { BufferPool } from '../../src/platform/buffer-pool.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import type { TerminalRecord } from '../../src/records/execution-record.ts';
import { RecordBatch } from '../../src/records/record-batch.ts';
import { generationRoutes } from '../../src/routes/generation-routes.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { findFreePort } from './free-port.ts';
import { frontOfThisRun } from './http-front-name.ts';
import { silentLog } from './silent-log.ts';
import { recordsOf } from './spool-records.ts';
import { UPSTREAM_CLIENT } from './upstream-client.ts';

/** A look-up that a test can make wait. */
export class Gate {
  /** The number of look-ups that have arrived. */
  arrived = 0;
  private readonly waiting: (() => void)[] = [];
  private isShut = false;

  shut(): void {
    this.isShut = true;
  }

  open(): void {
    this.isShut = false;
    for (const resume of this.waiting.splice(0)) resume();
  }

  async pass(): Promise<void> {
    this.arrived += 1;
    if (this.isShut) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

export const VIRTUAL_MODEL = 'service/auto';
const CLASSIFIER = 'sim/judge';

const PRICE = {
  version: '1',
  input: picoUsd(1_000n),
  cachedInput: null,
  cacheWrite: null,
  output: picoUsd(10_000n),
  image: null,
};

export function modelServedBy(id: string, provider: Provider, more: Partial<Model> = {}): Model {
  return {
    id,
    displayName: id,
    kind: 'text',
    aliases: [],
    contextLength: 100_000,
    maxOutputTokens: 10_000,
    maxCompletionTokensCap: 1_000,
    attachmentTokensMax: null,
    tokenizer: 'o200k_base',
    active: true,
    createdAtMs: 0,
    servedBy: [
      {
        provider,
        providerModel: id,
        apis: ['chat_completions', 'responses', 'messages', 'count_tokens'],
        price: PRICE,
      },
    ],
    ...more,
  };
}

export function providerAt(url: string, id = 'upstream'): Provider {
  return { id, baseUrl: url, apiKey: 'sk-of-the-platform', auth: 'bearer', onDisconnect: 'cancel' };
}

const POLICY: RoutingPolicy = {
  name: 'default',
  version: 1,
  classifier: { model: CLASSIFIER, timeoutMs: 60_000, confidenceFloor: 0.5 },
  tiers: [
    { name: 'light', description: 'Easy.', models: [{ id: 'sim/small', strengths: [] }] },
    { name: 'strong', description: 'Hard.', models: [{ id: 'sim/large', strengths: [] }] },
  ],
  fallbackTier: 'strong',
  kinds: [],
  followUp: null,
  sticky: null,
  preferNativeApi: false,
};

export interface PlaneOptions {
  readonly providerUrl: string;
  /** The principals, by credential. */
  readonly principals: ReadonlyMap<string, Principal>;
  /** The amount that each wallet or limit can grant; one that is not listed can grant any amount. */
  readonly amounts?: ReadonlyMap<string, bigint>;
  readonly turns?: TurnStore;
  readonly models?: readonly Model[];
  /** How long an exact count may wait for the count before it; by default as in a gateway. */
  readonly countWaitMsMax?: number;
  /** Receives the records instead of `records` and `ends`. */
  readonly spool?: RecordSink;
  readonly policies?: PoliciesInForce;
  /** The client for calls to providers; by default that of this test run. */
  readonly client?: 'own' | 'undici';
  readonly front?: Front;
}

/** A data plane whose stores remember nothing, and whose leases are granted from the amounts that the test gives. */
export class PlaneInProcess {
  readonly gates = {
    credential: new Gate(),
    lease: new Gate(),
    continuation: new Gate(),
    route: new Gate(),
    decidedRoute: new Gate(),
    counting: new Gate(),
  };
  readonly amounts: Map<string, bigint>;
  readonly leases: QuotaLeases;
  readonly buffers = new BufferPool();
  readonly scanner = new RequestScanner();
  readonly relays = new OpenRelays();
  readonly faults: unknown[] = [];
  /** The kinds of refusals that were sent. */
  readonly refusals: string[] = [];
  /** The number of records in the spool, both of starts and of ends. */
  records = 0;
  /** The records of ends. */
  readonly ends: TerminalRecord[] = [];
  /** The records of refused requests. */
  readonly refused: TerminalRecord[] = [];
  savedResponse: SavedResponseAnswer = 'unknown';
  url = '';
  port = 0;
  private readonly metrics = new MetricsRegistry();
  readonly routes: ReturnType<typeof generationRoutes>;
  readonly server: Server;
  private readonly workers: WorkerPool;
  private readonly providers: ProviderCalls;

  static async start(options: PlaneOptions): Promise<PlaneInProcess> {
    const plane = new PlaneInProcess(options, options.front ?? (await frontOfThisRun()));
    plane.port = await findFreePort();
    await plane.server.listen('127.0.0.1', plane.port);
    plane.url = `http://127.0.0.1:${plane.port}`;
    return plane;
  }

  private constructor(options: PlaneOptions, front: Front) {
    const { gates } = this;
    const { metrics } = this;
    const clock = systemClock;
    this.amounts = new Map(options.amounts);
    const time = {
      monotonicMs: () => clock.monotonicMs(),
      wait: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    };
    this.leases = new QuotaLeases(this.leaseStore(), time, (fault) => this.faults.push(fault));
    this.workers = new WorkerPool({ threads: 1, queueBytesMax: 1 << 26, log: silentLog, metrics });
    this.providers = new ProviderCalls(metrics, clock, { client: options.client ?? UPSTREAM_CLIENT });
    const { providers } = this;
    const workers = {
      run: async (...task: Parameters<WorkerPool['run']>) => {
        await gates.counting.pass();
        return this.workers.run(...task);
      },
    } as unknown as WorkerPool;
    const findResponse = async (): Promise<SavedResponseAnswer> => {
      await gates.continuation.pass();
      return this.savedResponse;
    };
    const savedResponses = new SavedResponses({
      findResponse,
      findItems: async () => new Map(),
      postingPassed: async () => true,
    });
    const noKeys = { settings: BYOK_DEFAULTS, keys: [], prices: new Map<string, Price>() };
    const ownKeys = new HeldOwnKeys(async () => noKeys, clock);
    const relay: RelayContext = {
      buffers: this.buffers,
      workers,
      clock,
      open: this.relays,
      cooldowns: new Cooldowns(),
      keyPauses: ownKeys.pauses,
      onOwnKeyRefused: () => undefined,
      onOwnKeySpent: () => undefined,
      providers,
      reportFailedCall: () => undefined,
    };
    const routingMetrics = new RoutingMetrics(metrics);
    const router = new Router({
      virtualModel: VIRTUAL_MODEL,
      workers,
      turns: new SharedTurns({
        store: gated(options.turns ?? new RememberedTurns(), { claim: gates.route, decide: gates.decidedRoute }),
        clock,
        onStoreFault: (fault) => this.faults.push(fault),
      }),
      classifier: new Classifier({ ...relay, metrics: routingMetrics }),
      savedResponses,
      metrics: routingMetrics,
    });
    const catalog = prepareCatalog(catalogOf(options));
    const journalOf = (sink: RecordSink): RecordJournal => new RecordJournal(sink, (fault) => this.faults.push(fault));
    const sinkOf = (written: (batch: RecordBatch) => void): RecordSink => ({
      takeBatch: () => new RecordBatch(),
      appendBatch: written,
    });
    const terminals = (batch: RecordBatch) => recordsOf(batch).filter((record) => record.type === 'terminal');
    const counted = sinkOf((batch) => {
      this.records += batch.records;
      this.ends.push(...terminals(batch));
    });
    const journal = journalOf(options.spool ?? counted);
    const refusals = journalOf(sinkOf((batch) => this.refused.push(...terminals(batch))));
    const canRecord = (): boolean => true;
    const screened = new GuardrailMetrics(metrics);
    const find = async (credential: string): Promise<Principal | null> => {
      await gates.credential.pass();
      return options.principals.get(credential) ?? null;
    };
    const plane: DataPlane = {
      authenticator: new Authenticator(find, clock),
      catalog: () => catalog,
      intake: { buffers: this.buffers, scanner: this.scanner, bodyLimitBytes: 1 << 25 },
      admission: {
        leases: this.leases,
        workers,
        counts: new OrganizationQueues({ ...COUNTS, waitMsMax: options.countWaitMsMax ?? COUNTS.waitMsMax }),
        clock,
      },
      savedResponses,
      ownKeys,
      metering: { journal, clock, metrics: new GenerationMetrics(metrics), guardrails: screened, savedResponses },
      refusedRequests: new RefusedRequests({ journal: refusals, clock, canRecord, metrics, guardrails: screened }),
      relay,
      router,
      clock,
      canRecord,
      policiesInForce: () => options.policies ?? null,
      externalDetectors: new ExternalDetectors({ clock, log: silentLog, metrics, allowPrivate: false }),
      guardrailHeaders: { action: 'X-Service-Guardrail', count: 'X-Service-Guardrail-Count' },
      executionIdHeader: 'X-Service-Execution-Id',
      routedModelHeader: 'X-Service-Routed-Model',
      tagHeader: 'x-service-tag',
      keepsTraceparent: false,
    };
    this.routes = generationRoutes({ plane, dialectRefusals: new Set() } as unknown as RouteParts);
    this.server = new Server({
      front,
      routes: this.routes,
      renderContext: { publicUrl: 'https://gate.test' },
      nextRequestId: createExecutionIdSource(clock),
      onRefusal: (kind) => this.refusals.push(kind),
      onFault: (fault) => this.faults.push(fault),
    });
  }

  private leaseStore(): LeaseStore {
    return {
      take: async ({ key }: Quota, { amount, minimum }): Promise<LeaseAnswer> => {
        await this.gates.lease.pass();
        const there = this.amounts.get(key) ?? 1n << 60n;
        const granted = there >= amount ? amount : there >= minimum ? there : 0n;
        this.amounts.set(key, there - granted);
        return {
          granted,
          grantId: key,
          validForMs: null,
          presentMoved: false,
          available: there - granted,
          leasedElsewhere: 0n,
          frozen: false,
          ceiling: null,
          retryAfterMs: null,
          gone: false,
        };
      },
      giveBack: async ({ key }, _, amount) => {
        this.amounts.set(key, (this.amounts.get(key) ?? 0n) + amount);
        return 'done';
      },
      recover: () => Promise.reject(new Error('no answer is lost here')),
      revoke: async () => undefined,
      probe: async () => undefined,
    };
  }

  /** Calls to providers whose reply has not ended. */
  get openCalls(): number {
    return Number(/^tollgate_upstream_open (\S+)$/m.exec(this.metrics.render())?.[1]);
  }

  /** Exchanges whose response is not complete. */
  get openExchanges(): number {
    return this.server.openExchanges;
  }

  /** The sum of all holds of credit and of every kind of limit. */
  get held(): bigint {
    const kinds = ['credit', 'requests_per_minute', 'tokens_per_minute', 'concurrent_requests', 'budget'] as const;
    return kinds.reduce((sum, kind) => sum + this.leases.totals(kind).held, 0n);
  }

  /** All counts that must be zero once no request is open. */
  get underWay(): Readonly<Record<string, number>> {
    return {
      inflight: this.openExchanges,
      relays: this.relays.size,
      buffers: this.buffers.lent,
      held: Number(this.held),
    };
  }

  /**
   * Loads the tokenizer, as a process has that counted before. The first count loads it, which on a busy machine takes
   * longer than a request may wait for its count.
   */
  async loadTokenizer(): Promise<void> {
    const request = Buffer.from('{"messages":[]}');
    const input = {
      api: 'chat_completions',
      encoding: 'o200k_base',
      request,
      response: new Uint8Array(0),
      responseIsStream: false,
      responseBytesTotal: 0,
      count: { input: 'at_most', output: false },
    } satisfies CountTokensInput;
    const { ok } = await this.workers.run('count-tokens', input, { bytes: request.length, deadlineMs: 300_000 });
    if (!ok) throw new Error('the tokenizer was not loaded');
  }

  async stop(): Promise<void> {
    for (const gate of Object.values(this.gates)) gate.open();
    await this.server.drain(0);
    await this.workers.close();
    await this.providers.close();
    assert.deepEqual(this.faults, []);
  }
}

/** A turn store in memory. */
class RememberedTurns implements TurnStore {
  private readonly rows = new Map<string, Awaited<ReturnType<TurnStore['find']>>>();

  async claim(turn: Parameters<TurnStore['claim']>[0]): ReturnType<TurnStore['claim']> {
    const claimed = !this.rows.has(turn.turn);
    if (claimed) this.rows.set(turn.turn, { decision: null, claimedAgoMs: 0, previous: null });
    return { ...(await this.find(turn)), claimed };
  }

  async find({ turn }: Parameters<TurnStore['find']>[0]): ReturnType<TurnStore['find']> {
    return this.rows.get(turn) ?? { decision: null, claimedAgoMs: null, previous: null };
  }

  async decide(
    { turn }: Parameters<TurnStore['decide']>[0],
    decision: Parameters<TurnStore['decide']>[1],
  ): ReturnType<TurnStore['decide']> {
    this.rows.set(turn, { decision, claimedAgoMs: 0, previous: null });
    return null;
  }

  async release({ turn }: Parameters<TurnStore['find']>[0]): Promise<void> {
    this.rows.delete(turn);
  }
}

function gated(store: TurnStore, gates: { readonly [Call in keyof TurnStore]?: Gate }): TurnStore {
  return new Proxy(store, {
    get: (target, name: keyof TurnStore) => {
      const call = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        await gates[name]?.pass();
        return call(...args);
      };
    },
  });
}

function catalogOf({ providerUrl, principals, models: given }: PlaneOptions): Catalog {
  const provider = providerAt(providerUrl);
  const judge = modelServedBy(CLASSIFIER, provider, {
    kind: 'evaluation',
    servedBy: [{ provider, providerModel: 'judge', apis: ['systemone'], price: PRICE }],
  });
  const models = [...(given ?? [modelServedBy('sim/small', provider), modelServedBy('sim/large', provider)]), judge];
  const organizations = [...principals.values()].flatMap(({ organizationId }) =>
    organizationId === null ? [] : [organizationId],
  );
  return {
    version: 1,
    models,
    byName: new Map(models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model]))),
    routing: {
      policies: new Map([['default', POLICY]]),
      policyOf: new Map(organizations.map((id) => [id, 'default'])),
    },
  };
}

/** What a classifier answers. */
export function classifierAnswer(tier: string): string {
  return JSON.stringify({
    answers: { tier: { choice: tier, confidence: 1, probabilities: { [tier]: 1 } } },
    usage: { input_tokens: 10 },
  });
}

/** Starts a client on a socket of its own that sends one request, and can leave by a reset or by an end. */
export function sendAndHold(
  port: number,
  path: string,
  key: string,
  body: string | null,
): { leave(): void; end(): void } {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.on('error', () => undefined);
  const head =
    body === null
      ? `GET ${path} HTTP/1.1\r\n`
      : `POST ${path} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  socket.write(`${head}host: gate.test\r\nauthorization: Bearer ${key}\r\n\r\n${body ?? ''}`);
  return { leave: () => socket.resetAndDestroy(), end: () => socket.destroy() };
}
