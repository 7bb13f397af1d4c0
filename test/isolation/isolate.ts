// One isolation run from start to last check: installation, providers, load, look-ups that wait, a rolling restart
// under load, and the final checks. Several runs can use the same installation, also against a gateway process in which
// a fault is planted.

import type { Tollgate } from '../support/gateway.ts';
import { ColdSupply } from './cold-supply.ts';
import { checkLookUps, checkQuiet } from './final-checks.ts';
import { SeenPlaceholders } from './guarded.ts';
import { MASTER_KEY, startInstallation } from './installation.ts';
import { Load } from './load.ts';
import { LOOK_UPS, type LookUp, LookUps } from './look-ups.ts';
import { MediaTraffic } from './media-traffic.ts';
import { OwnKeys, ownKeysConfiguration } from './own-keys.ts';
import type { Exchange } from './plan.ts';
import { guardrailPolicies, guardrailsOf } from './planted.ts';
import { Providers } from './providers.ts';
import { Watch } from './watch.ts';
import { GUARDED_TENANTS, isolationConfiguration, OWN_TENANTS, TENANTS } from './world.ts';

export interface IsolationOptions {
  readonly seed: number;
  readonly from: number;
  readonly exchanges: number;
  readonly atOnce: number;
  /** Large bodies and faults are rare, so that a long run is fast. */
  readonly isLight: boolean;
  /** The number of exchanges between two rounds of waiting look-ups. A round has one look-up of every kind. */
  readonly lookUpsEvery: number;
  /** Instead: rounds without a pause, until this many clients have left in look-ups of each of these kinds. */
  readonly densely?: { readonly lookUps: readonly LookUp[]; readonly leavers: number };
  /** Most exchanges belong to organizations with own provider keys, and a key changes after this many exchanges. */
  readonly ownKeys?: { readonly changeEvery: number };
  /** Most exchanges belong to organizations whose policies change texts. */
  readonly isGuarded?: boolean;
  /** Beside the exchanges, plain organizations upload and request files, in at least this many steps. */
  readonly media?: { readonly steps: number };
  /** The number of exchanges between two rolling restarts of the gateways; 0: no restart. */
  readonly rollEvery: number;
  /** The address of the one gateway to attack instead of the installation's own. */
  readonly instead?: { readonly url: string; readonly adminUrl: string };
  /** No further exchange begins once a violation is found. */
  readonly endsAtFirst?: boolean;
  readonly onProgress?: { readonly everyMs: number; readonly tell: (watch: Watch) => void };
}

const PLAIN_TENANTS = Array.from({ length: TENANTS }, (_, index) => index + 1);
/** The number of clients in a round beside a load, and in one of many dense rounds. */
const CLIENTS = { beside: 6, densely: 60 } as const;

export class Isolation {
  readonly tollgate: Tollgate;
  private readonly supply = new ColdSupply(MASTER_KEY);
  private readonly providers: Providers;
  /** The state of the present run. */
  private readonly present: { watch: Watch; open: Map<number, Exchange>; lookUps: LookUps | null };
  /** The number of runs that have begun. */
  private runs = 0;
  private readonly endWithUs = (): void => void process.kill(this.tollgate.pid, 'SIGTERM');

  static async start(gatewayProcesses: number): Promise<Isolation> {
    const present: Isolation['present'] = { watch: new Watch(), open: new Map(), lookUps: null };
    const providers = new Providers({
      watch: () => present.watch,
      findExchange: (index) => present.open.get(index),
      classifierWaits: (exchange) => present.lookUps?.classifierWaits(exchange) ?? null,
    });
    await providers.listen();
    const tollgate = await startInstallation(
      isolationConfiguration((id) => providers.urls.get(id) ?? '', {
        ownKeysOf: ownKeysConfiguration,
        policies: guardrailPolicies(),
        guardrailsOf,
      }),
      gatewayProcesses,
    );
    providers.ownKeys = new OwnKeys(tollgate.url, () => present.watch);
    return new Isolation(tollgate, providers, present);
  }

  private constructor(tollgate: Tollgate, providers: Providers, present: Isolation['present']) {
    this.tollgate = tollgate;
    this.providers = providers;
    this.present = present;
    // If the run itself fails, no installation must be left behind.
    process.once('exit', this.endWithUs);
  }

  async run(options: IsolationOptions): Promise<Watch> {
    const { present, providers, tollgate } = this;
    const watch = new Watch();
    const { url, adminUrl } = options.instead ?? tollgate;
    const port = Number(new URL(url).port);
    const load = new Load(new Map(), watch, providers);
    const lookUps = new LookUps({
      postgresUrl: tollgate.postgresUrl,
      port,
      open: load.open,
      watch,
      seed: options.seed,
      supply: this.supply,
    });
    Object.assign(present, { watch, open: load.open, lookUps });
    providers.placeholders = new SeenPlaceholders();
    const { onProgress } = options;
    const timer = onProgress === undefined ? null : setInterval(() => onProgress.tell(watch), onProgress.everyMs);
    const isOver = (): boolean => options.endsAtFirst === true && watch.violationCount > 0;
    const end = { reached: false };
    try {
      const beside = this.workBeside(options, lookUps, watch, () => end.reached || isOver()).finally(() => {
        if (options.densely !== undefined) end.reached = true;
      });
      const { media } = options;
      const files =
        media === undefined
          ? null
          : new MediaTraffic({ url, watch, seed: options.seed, run: this.runs, tenants: PLAIN_TENANTS }).run(
              media.steps,
              () => end.reached || isOver(),
            );
      this.runs += 1;
      // The load awaits it later, so an early failure must not count as unhandled.
      files?.catch(() => undefined);
      const ownTenants = options.ownKeys === undefined ? [] : OWN_TENANTS;
      const isGuarded = options.isGuarded === true;
      await load.run({
        ...options,
        port,
        ownTenants,
        isGuarded,
        stopEarly: () => isOver() || (options.densely !== undefined && end.reached),
      });
      end.reached = true;
      await beside;
      await files;
      await providers.ownKeys?.settled();
      await checkQuiet({ adminUrl, watch });
      const tenants = [...PLAIN_TENANTS, ...ownTenants, ...(isGuarded ? GUARDED_TENANTS : [])];
      if (!isOver()) await checkLookUps({ url, adminUrl, load, watch, tenants });
    } finally {
      if (timer !== null) clearInterval(timer);
      await lookUps.close();
    }
    return watch;
  }

  /** Runs waiting look-ups and rolling restarts beside the load. */
  private async workBeside(
    { lookUpsEvery, densely, rollEvery, instead, ownKeys }: IsolationOptions,
    lookUps: LookUps,
    watch: Watch,
    isOver: () => boolean,
  ): Promise<void> {
    let nextLookUps = 0;
    let nextRoll = rollEvery;
    let nextChange = ownKeys?.changeEvery ?? Number.POSITIVE_INFINITY;
    while (!isOver()) {
      if (densely === undefined && watch.exchanges >= nextLookUps) {
        nextLookUps = watch.exchanges + lookUpsEvery;
        for (const lookUp of LOOK_UPS)
          if (!isOver() && lookUps.canRun(lookUp)) await lookUps.run(lookUp, CLIENTS.beside);
      } else if (watch.exchanges >= nextChange) {
        nextChange = watch.exchanges + (ownKeys?.changeEvery ?? 0);
        await this.providers.ownKeys?.change();
      } else if (instead === undefined && rollEvery > 0 && watch.exchanges >= nextRoll) {
        nextRoll = watch.exchanges + rollEvery;
        watch.count(watch.faults, 'gateways roll');
        process.kill(this.tollgate.pid, 'SIGHUP');
      } else if (densely !== undefined) {
        const due = densely.lookUps.find((one) => lookUps.canRun(one) && lookUps.knownLeavers(one) < densely.leavers);
        if (due === undefined) return;
        await lookUps.run(due, CLIENTS.densely);
        continue;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async stop(): Promise<void> {
    process.off('exit', this.endWithUs);
    await this.tollgate.stop();
    await this.providers.close();
  }
}
