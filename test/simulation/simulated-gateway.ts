// A gateway process, assembled like src/gateway/run-gateway.ts from the real leases, admission, journal and spool,
// without HTTP.

import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { createLeaseStore, hearRevocation } from '../../src/gateway/generation/lease-store.ts';
import { admit } from '../../src/generation/admission/admit.ts';
import { QuotaLeases } from '../../src/generation/admission/leases/quota-leases.ts';
import type { AdmissionParams } from '../../src/generation/admission/plan-holds.ts';
import type { SavedResponses } from '../../src/generation/catalog/saved-responses.ts';
import { type AdmittedRequest, Execution, type Metering } from '../../src/generation/execution/execution.ts';
import { GenerationMetrics } from '../../src/generation/execution/generation-metrics.ts';
import { RecordJournal } from '../../src/generation/execution/record-journal.ts';
import { GuardrailMetrics } from '../../src/generation/guardrails/guardrail-metrics.ts';
import { createExecutionIdSource } from '../../src/platform/execution-id.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { registerEpoch } from '../../src/storage/postgres/ledger/wallets.ts';
import { SpoolWriter } from '../../src/storage/spool/spool-writer.ts';
import { logOf } from './simulated-log.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import { PostgresOfProcess, type SimulatedPostgres } from './simulated-postgres.ts';
import { SimulatedProcess, type World } from './virtual-world.ts';

export const SPOOL_DIRECTORY = '/data/spool';
const COARSE_INTERVAL_MS = 1_000;
const MACHINE = 'machine-1';

/** Counters that nobody reads. Creating them for each process would cost more than the process. */
const metrics = new GenerationMetrics(new MetricsRegistry());
const guardrails = new GuardrailMetrics(new MetricsRegistry());
const leaseMetrics = {
  counter: () => ({ labels: () => ({ increment: () => undefined }) }),
} as unknown as MetricsRegistry;
/** Responses have no ids here, so nothing is remembered. */
const NO_SAVED_RESPONSES = { remember: () => undefined } as unknown as SavedResponses;

/** Is told what happens to a gateway and to its executions (watch.ts). */
export interface GatewayWatch {
  gatewayOpened(gateway: SimulatedGateway): void;
  gatewayDied(gateway: SimulatedGateway): void;
  admitted(gateway: SimulatedGateway, execution: Execution, params: AdmissionParams): void;
  unadmitted(execution: Execution): void;
}

export interface SpoolSettings {
  readonly segmentBytesMax: number;
  readonly fsyncIntervalMs: number;
  readonly freeBytesMin: number;
  readonly reserveFileBytes: number;
}

export class SimulatedGateway {
  readonly process: SimulatedProcess;
  epoch = 0;
  serving = false;
  draining = false;
  records: SpoolWriter | null = null;
  leases: QuotaLeases | null = null;
  metering: Metering | null = null;
  /** A gateway that listens hears of revocations; a gateway with a broken connection does not. */
  listens = false;
  openRequests = 0;
  readonly postgres: PostgresOfProcess;
  private readonly world: World;
  private readonly server: SimulatedPostgres;
  private readonly watch: GatewayWatch;
  private nextId: () => string = () => '';

  constructor(parts: {
    world: World;
    name: string;
    server: SimulatedPostgres;
    network: SimulatedNetwork;
    watch: GatewayWatch;
    onDeath: () => void;
  }) {
    this.world = parts.world;
    this.server = parts.server;
    this.watch = parts.watch;
    this.process = new SimulatedProcess(parts.world, parts.name, () => {
      this.postgres.abandon();
      this.serving = false;
      parts.watch.gatewayDied(this);
      parts.onDeath();
    });
    this.postgres = new PostgresOfProcess(this.process, parts.server, parts.network);
  }

  /** Starts the gateway. A start that fails ends the process, as in the product. */
  start(settings: SpoolSettings): void {
    this.process.in(0, `${this.process.name} starts`, () => {
      this.open(settings).catch((fault: unknown) => this.process.die(`while it starts: ${String(fault)}`));
    });
  }

  private async open(settings: SpoolSettings): Promise<void> {
    const { postgres, process, world } = this;
    const { clock } = process;
    const log = logOf(process);
    this.epoch = await registerEpoch(postgres, { machine: MACHINE, pid: process.pid, kind: 'gateway' });
    const { epoch } = this;
    world.note(`${process.name} has epoch ${epoch}`);
    const records = SpoolWriter.open({ directory: SPOOL_DIRECTORY, epoch, ...settings, log, clock });
    const time = {
      monotonicMs: () => clock.monotonicMs(),
      wait: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    };
    const leases = new QuotaLeases(createLeaseStore(postgres, epoch, leaseMetrics), time, (fault) =>
      world.noteFault(fault),
    );
    const onRecordFault = (fault: unknown): void => log.error({ err: fault }, 'records could not be written');
    const journal = new RecordJournal(records, onRecordFault, (run) => void setImmediate(run));
    this.records = records;
    this.leases = leases;
    this.metering = { journal, clock, metrics, guardrails, savedResponses: NO_SAVED_RESPONSES };
    this.nextId = createExecutionIdSource(clock, (bytes) => {
      for (let index = 0; index < bytes.length; index += 1) bytes[index] = world.random.below(256);
    });
    this.listens = true;
    this.watch.gatewayOpened(this);
    setInterval(() => {
      records.check();
      leases.tick();
    }, COARSE_INTERVAL_MS);
    this.serving = true;
  }

  /** Breaks the listening connection; until it is back, notifications are missed. */
  deafen(forMs: number): void {
    if (!this.listens) return;
    this.listens = false;
    const reconnect = (): void => {
      if (!this.server.up) {
        this.process.in(1_000, 'listener tries again', reconnect);
        return;
      }
      this.listens = true;
      this.leases?.renewAll();
    };
    this.process.in(forMs, 'listener is back', reconnect);
  }

  hear(payload: string): void {
    if (this.listens && this.leases !== null) hearRevocation(this.leases, payload, this.epoch);
  }

  expectRoom(key: string): void {
    if (this.listens) this.leases?.expectRoom(key);
  }

  /** Admits, then records, as serve.ts does. `begun` may send; `refused` must not. */
  admit(params: AdmissionParams, begun: (execution: Execution) => void, refused: (refusal: Refusal) => void): void {
    const { records, leases, process } = this;
    if (records === null || leases === null || !records.healthy) {
      refused({ kind: 'billing_unavailable' });
      return;
    }
    const parts = { leases, workers: undefined as never, counts: undefined as never, clock: process.clock };
    const admitting = admit(params, parts);
    const goOn = (admission: Awaited<typeof admitting>): void => {
      if ('kind' in admission) refused(admission);
      else this.record(params, admission, begun, refused);
    };
    if (admitting instanceof Promise) admitting.then(goOn).catch((fault: unknown) => this.world.noteFault(fault));
    else goOn(admitting);
  }

  private record(
    params: AdmissionParams,
    admission: Execution['admission'],
    begun: (execution: Execution) => void,
    refused: (refusal: Refusal) => void,
  ): void {
    const { clock } = this.process;
    const { principal, served, dialect, bounds, request } = params;
    const [deployment] = served.deployments.get(dialect.api) ?? [];
    const admitted: AdmittedRequest = {
      id: this.nextId(),
      admittedAtMs: clock.nowMs(),
      principal: principal as AdmittedRequest['principal'],
      api: dialect.api,
      requestedModel: served.model.id,
      model: served.model.id,
      deployment: deployment as AdmittedRequest['deployment'],
      streamed: bounds.streamed,
      clientRequestId: null,
      traceparent: null,
      tags: [],
      route: null,
      requestBytes: request.body.length,
    };
    const execution = new Execution(admitted, admission, clock.monotonicMs(), this.metering as Metering);
    this.watch.admitted(this, execution, params);
    execution.begin({
      onRecorded: () => begun(execution),
      onUnrecorded: () => {
        this.watch.unadmitted(execution);
        refused({ kind: 'billing_unavailable' });
      },
    });
  }

  /**
   * Drains for a roll: takes nothing new, lets open requests end, returns free money, closes the spool and ends the
   * process.
   */
  drain(limitMs: number): void {
    if (!this.serving || this.draining) return;
    this.draining = true;
    this.serving = false;
    this.world.note(`${this.process.name} drains`);
    const deadlineMs = this.world.nowMs + limitMs;
    const look = (): void => {
      if (this.openRequests > 0 && this.world.nowMs < deadlineMs) {
        this.process.in(50, 'drain', look);
        return;
      }
      void this.close();
    };
    this.process.in(0, 'drain', look);
  }

  private async close(): Promise<void> {
    try {
      await this.leases?.returnAll();
      this.listens = false;
      await this.records?.close();
    } catch (fault) {
      this.world.note(`${this.process.name} could not be closed cleanly: ${String(fault)}`);
    }
    this.process.die('in order');
  }
}
