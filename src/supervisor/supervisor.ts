// The supervisor of one installation: starts its processes in order, keeps them running, rolls them, and ends them in
// the order that loses nothing. The caller passes a plan of what to start.
//
//   start:  postgres -> prepare (migrations, the simulated provider of a demo, configuration) -> jobs + gateways
//           -> announce
//   stop:   gateways (finish what is in flight) -> jobs (ships what they wrote) -> simulated provider -> postgres

import { type ChildProcess, fork } from 'node:child_process';
import { StartFault } from '../installation/start-fault.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { MetricsRegistry, type MetricsSnapshot } from '../platform/metrics.ts';
import { registerBuildInfo } from '../platform/version.ts';
import { type AdminServer, startAdminServer } from './admin-server.ts';
import type { Readiness } from './messages.ts';
import { ProcessJournal } from './process-journal.ts';
import { type ProcessRole, ProcessSlot } from './process-slot.ts';
import { listenForSignals } from './shutdown-signals.ts';
import { describeWaiting, type Stage, tellWaiting } from './waiting-notes.ts';

export interface ProcessPlan {
  /** Absolute path of the module to fork. */
  readonly module: string;
  readonly args: readonly string[];
}

export interface SupervisorPlan {
  readonly dataDirectory: string;
  readonly gatewayProcesses: number;
  readonly drainLimitMs: number;
  /** npm started the supervisor, which must not outlive it. */
  readonly endsWithParent: boolean;
  /** The interval of checks for a sign of life of gateways. */
  readonly watchStepMs?: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly adminPortIsFixed: boolean;
  /** Who may take profiles; null: nobody. */
  readonly adminToken: string | null;
  readonly postgres: ProcessPlan | null;
  readonly jobs: ProcessPlan;
  readonly gateway: ProcessPlan;
  /** The environment of every process, read at each start of one. */
  readonly environment: () => Readonly<Record<string, string | undefined>>;
  /** The work between the database's start and the start of anything that serves. */
  readonly prepare: (parts: PreparedParts) => Promise<void>;
  /** Writes a line to the terminal. */
  readonly print: (text: string) => void;
  /** Called when everything serves. */
  readonly announce: (addresses: { adminPort: number }) => void;
}

export interface PreparedParts {
  /** Resolves with its address; null: it is not started, because everything is being stopped. */
  readonly startSimulatedProvider: (plan: ProcessPlan) => Promise<string | null>;
}

/** The time limit for a process to answer about itself. */
const ANSWER_LIMIT_MS = 1_000;
/**
 * A gateway that was silent at this many checks, five seconds apart, hangs. The longest pause of a busy gateway is far
 * shorter.
 */
const SILENT_STEPS_MAX = 6;
const WATCH_STEP_MS = 5_000;
const JOBS_DRAIN_LIMIT_MS = 30_000;
const POSTGRES_STOP_LIMIT_MS = 60_000;

/**
 * The first option lets V8 inline twice as much, because a request runs through many small functions: CPU per 1 KB
 * request fell to 0.975 to 0.993 in five runs. The second gives V8 two spaces of 8 MB for young objects instead of 16
 * MB, because a start fills them and nothing empties them again; a request's CPU stays the same (0.991, middle half
 * 0.943 to 1.024, 20 pairs).
 */
const GATEWAY_OPTIONS = ['--max-inlined-bytecode-size-cumulative=2000', '--max-semi-space-size=8'];
/**
 * Jobs makes 8 MB of garbage for a thousand requests and keeps little. By default V8 would collect its small heap after
 * every few megabytes, with threads that mostly wait for each other. With these options the heap grows to four times
 * what is in use before a collection, and only the main thread collects. A record needs a quarter less CPU (P14), for
 * 15 to 30 MB of memory, 80 MB while CSV exports run.
 */
const JOBS_OPTIONS = ['--heap-growing-percent=300', '--single-threaded-gc'];
/** Keys are in the memory of these processes, so no signal may open a debugger in them. */
const PROCESS_OPTIONS = ['--disable-sigusr1'];
const OPTIONS_OF: Readonly<Partial<Record<ProcessRole, readonly string[]>>> = {
  gateway: GATEWAY_OPTIONS,
  jobs: JOBS_OPTIONS,
};
/**
 * The spool is synced in libuv's threads (4 by default), which also look up host names. glibc gives each thread an
 * arena to allocate from and keeps the free memory of each arena. With a single arena an idle gateway has 151 MB
 * instead of 173, and 143 with the smaller space for young objects above.
 */
const GATEWAY_ENVIRONMENT = { UV_THREADPOOL_SIZE: '8', MALLOC_ARENA_MAX: '1' };

export class Supervisor {
  private readonly plan: SupervisorPlan;
  private readonly log: Log;
  private readonly clock: Clock;
  private readonly journal: ProcessJournal;
  private readonly slots: ProcessSlot[] = [];
  private readonly metrics = new MetricsRegistry();
  private readonly restarts = this.metrics.counter(
    'tollgate_process_restarts_total',
    'Processes that ended unexpectedly and were restarted.',
    ['role'],
  );
  private readonly running = this.metrics.gauge('tollgate_processes_ready', 'Processes that are ready, by role.', {
    labelNames: ['role'],
  });
  /** The counters of ended processes, whose sums stay in /metrics. */
  private retired: MetricsSnapshot = [];
  private state: 'starting' | 'serving' | 'stopping' = 'starting';
  private isPreparing = false;
  private rolling = false;
  /** The environment with which the present jobs process was started, as JSON. */
  private jobsEnvironment = '';
  private watch: NodeJS.Timeout | null = null;
  private stopWanted: Promise<void>;
  private wantStop: () => void = () => undefined;

  constructor(plan: SupervisorPlan, { log, clock }: { log: Log; clock: Clock }) {
    this.plan = plan;
    this.log = log;
    this.clock = clock;
    this.journal = new ProcessJournal(plan.dataDirectory);
    registerBuildInfo(this.metrics);
    this.stopWanted = new Promise((resolve) => {
      this.wantStop = resolve;
    });
  }

  /**
   * Runs the installation until it is told to stop. Throws StartFault if it cannot start. When this returns, none of
   * its processes runs.
   */
  async run(): Promise<void> {
    const stopListening = listenForSignals(
      {
        onStop: (reason) => {
          this.log.info({ reason }, 'stopping');
          this.wantStop();
        },
        onForce: () => this.force(),
        onRoll: () => void this.roll(),
      },
      { clock: this.clock, endsWithParent: this.plan.endsWithParent },
    );
    let admin: AdminServer | null = null;
    try {
      admin = await this.startAdmin();
      const { port } = admin;
      // A stop during the start takes effect at once: the start finds its slots stopped and gives up.
      const started = this.startAndTell().then(() => this.serve(port));
      await Promise.race([this.stopWanted, started.then(() => this.stopWanted)]);
    } finally {
      await this.stop();
      await admin?.close();
      stopListening();
    }
  }

  /** Prints what the start waits for, until everything serves or a stop is requested. */
  private async startAndTell(): Promise<void> {
    const over = this.tell(() => (this.isPreparing ? 'preparing' : 'starting'));
    void this.stopWanted.then(over);
    await this.start().finally(over);
  }

  private tell(stage: () => Stage): () => void {
    const { print, drainLimitMs } = this.plan;
    return tellWaiting(print, () => describeWaiting(stage(), this.slots, drainLimitMs));
  }

  private async start(): Promise<void> {
    const { postgres, jobs, gateway, gatewayProcesses, prepare } = this.plan;
    if (postgres !== null) await this.startOne('postgres', 'postgres', postgres);
    if (this.isStopping()) return;
    this.isPreparing = true;
    await prepare({ startSimulatedProvider: (plan) => this.startSimulatedProvider(plan) });
    this.isPreparing = false;
    const gateways = Array.from({ length: gatewayProcesses }, (_, index) =>
      this.startOne('gateway', `gateway-${index + 1}`, gateway),
    );
    await Promise.all([this.startOne('jobs', 'jobs', jobs), ...gateways]);
  }

  private serve(adminPort: number): void {
    if (this.state !== 'starting') return;
    this.state = 'serving';
    const stepMs = this.plan.watchStepMs ?? WATCH_STEP_MS;
    const gateways = this.slots.filter(({ role }) => role === 'gateway');
    this.watch = setInterval(() => {
      for (const slot of gateways) slot.replaceIfSilent({ stepMs, stepsMax: SILENT_STEPS_MAX });
    }, stepMs);
    this.plan.announce({ adminPort });
  }

  /** The port is chosen at the first start and kept, because the applied configuration contains it. */
  private async startSimulatedProvider(plan: ProcessPlan): Promise<string | null> {
    let { args } = plan;
    const url = await this.startOne('simulated-provider', 'simulated-provider', {
      module: plan.module,
      args: () => args,
    });
    if (url !== null) args = [...args, '--port', new URL(url).port];
    return url;
  }

  private async startOne(
    role: ProcessRole,
    name: string,
    plan: { module: string; args: readonly string[] | (() => readonly string[]) },
  ): Promise<string | null> {
    if (this.isStopping()) return null;
    let restarts = 0;
    const slot = new ProcessSlot({
      role,
      name,
      log: this.log,
      clock: this.clock,
      fork: () => this.fork(role, plan.module, typeof plan.args === 'function' ? plan.args() : plan.args),
      onChange: () => {
        this.restarts.labels(role).increment(slot.restarts - restarts);
        restarts = slot.restarts;
        this.recordProcesses();
      },
      onRetired: (snapshot) => {
        this.retired = MetricsRegistry.merge([this.retired, snapshot.filter((family) => family.type !== 'gauge')]);
      },
    });
    this.slots.push(slot);
    const report = await slot.start();
    if (report === null && !this.isStopping())
      throw new StartFault(`${name} does not start; the log lines above say why`);
    return report?.url ?? null;
  }

  private fork(role: ProcessRole, module: string, args: readonly string[]): ChildProcess {
    const environment = this.plan.environment();
    if (role === 'jobs') this.jobsEnvironment = JSON.stringify(environment);
    return fork(module, args, {
      env: { ...(role === 'gateway' ? GATEWAY_ENVIRONMENT : {}), ...environment } as NodeJS.ProcessEnv,
      execArgv: [...process.execArgv, ...PROCESS_OPTIONS, ...(OPTIONS_OF[role] ?? [])],
      // stdout is for the supervisor's own output, so the output of processes goes to stderr.
      stdio: ['ignore', 2, 2, 'ipc'],
    });
  }

  private recordProcesses(): void {
    for (const role of new Set(this.slots.map((slot) => slot.role))) {
      this.running.labels(role).set(this.slots.filter((slot) => slot.role === role && slot.isReady).length);
    }
    this.journal.record(this.slots.flatMap((slot) => slot.lives.map((life) => ({ name: slot.name, pid: life.pid }))));
  }

  private async startAdmin(): Promise<AdminServer> {
    const { adminHost, adminPort, adminPortIsFixed } = this.plan;
    const admin = await startAdminServer({
      host: adminHost,
      port: adminPort,
      orNext: !adminPortIsFixed,
      metrics: () => this.renderMetrics(),
      readiness: () => this.readiness(),
      profiles: {
        adminToken: this.plan.adminToken,
        processes: () => this.slots.filter(canBeProfiled).map(({ name }) => name),
        take: async (name, kind, seconds) => {
          const slot = this.slots.find((one) => one.name === name);
          return (await slot?.profile(kind, seconds)) ?? null;
        },
      },
    });
    if (admin === null)
      throw new StartFault(
        `ADMIN_PORT: port ${adminPort} on ${adminHost} is in use by another program; give another ADMIN_PORT ` +
          `or stop that program`,
      );
    return admin;
  }

  private async readiness(): Promise<Readiness> {
    if (this.state !== 'serving') return { notReady: [this.state], impaired: [] };
    const all = await Promise.all(this.slots.map((slot) => slot.readiness(ANSWER_LIMIT_MS)));
    return { notReady: all.flatMap(({ notReady }) => notReady), impaired: all.flatMap(({ impaired }) => impaired) };
  }

  private async renderMetrics(): Promise<string> {
    // Read before the processes are asked, so that a process which dies meanwhile is counted once.
    const retired = this.retired;
    const lives = this.slots.flatMap((slot) => slot.lives);
    const snapshots = await Promise.all(
      lives.map(async (life) => (await life.metrics(ANSWER_LIMIT_MS)) ?? life.lastSnapshot),
    );
    return MetricsRegistry.render(MetricsRegistry.merge([this.metrics.snapshot(), retired, ...snapshots]));
  }

  /** Replaces one gateway after the other, each only after its successor serves, so that the port is always served. */
  private async roll(): Promise<void> {
    if (this.state !== 'serving' || this.rolling) return;
    this.rolling = true;
    this.log.info('rolling restart of the gateways');
    for (const slot of this.slots.filter(({ role }) => role === 'gateway')) {
      if (await slot.replace(this.plan.drainLimitMs)) continue;
      if (this.isStopping()) return;
      this.log.error(
        { name: slot.name },
        'rolling restart stopped: the new process did not become ready, the old one keeps serving',
      );
      break;
    }
    await this.restartOutdatedJobs();
    this.rolling = false;
  }

  /** A second jobs process may not run beside the first, so jobs is only restarted if its settings have changed. */
  private async restartOutdatedJobs(): Promise<void> {
    const present = JSON.stringify(this.plan.environment());
    if (present === this.jobsEnvironment) return;
    for (const slot of this.slots.filter(({ role }) => role === 'jobs')) await slot.restart(JOBS_DRAIN_LIMIT_MS);
  }

  private isStopping(): boolean {
    return this.state === 'stopping';
  }

  private async stop(): Promise<void> {
    this.state = 'stopping';
    if (this.watch !== null) clearInterval(this.watch);
    // A signal to the whole process group ends some processes before we do.
    for (const slot of this.slots) slot.retire();
    const over = this.tell(() => 'stopping');
    await this.stopRole('gateway', this.plan.drainLimitMs);
    await this.stopRole('jobs', JOBS_DRAIN_LIMIT_MS);
    await this.stopRole('simulated-provider', 0);
    await this.stopRole('postgres', POSTGRES_STOP_LIMIT_MS);
    over();
  }

  private async stopRole(role: ProcessRole, limitMs: number): Promise<void> {
    await Promise.all(this.slots.filter((slot) => slot.role === role).map((slot) => slot.stop(limitMs)));
  }

  /**
   * The spool keeps the records of killed processes. Postgres is not killed, because it stops at once when nobody is
   * connected.
   */
  private force(): void {
    this.log.warn('stopping at once; open requests are cut');
    for (const slot of this.slots) if (slot.role !== 'postgres') slot.kill();
  }
}

/** Profiles are offered for gateways and jobs only. */
function canBeProfiled({ role }: ProcessSlot): boolean {
  return role === 'gateway' || role === 'jobs';
}
