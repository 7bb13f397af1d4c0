// Serves `tollgate start` without a configuration file: either the demo, with its configuration and its made-up
// traffic, or an installation that contains something of its owner's, unchanged.

import { fileURLToPath } from 'node:url';
import type { Config, Environment } from '../../config.ts';
import { virtualModelOf } from '../../domain/routing/virtual-model.ts';
import { claimPort } from '../../installation/ports.ts';
import { StartFault } from '../../installation/start-fault.ts';
import { systemClock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { isUsableKey } from '../../storage/postgres/apply/known-secrets.ts';
import type { InstallationSecrets } from '../../storage/postgres/installation-secrets.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { PreparedParts } from '../../supervisor/supervisor.ts';
import { applyOrExplain, readConfigurationFile } from '../configuration-file/configuration-file.ts';
import { type Applied, findTriable, NOTHING_APPLIED } from './applied.ts';
import { openDemoConsole } from './demo-console.ts';
import { keepDemoKey } from './demo-key.ts';
import { writeDemoHour } from './demo-traffic/write-hour.ts';
import type { FoundDemo } from './find-demo.ts';

const SIMULATED_PROVIDER_MODULE = fileURLToPath(new URL('../../simulator/main.ts', import.meta.url));
const DEMO_CONFIGURATION = fileURLToPath(new URL('../../../deploy/demo.yaml', import.meta.url));
const DEMO_TRAFFIC_CONFIGURATION = fileURLToPath(new URL('../../../deploy/demo-traffic.yaml', import.meta.url));

export interface DemoPlace {
  readonly config: Config;
  readonly environment: Environment;
  readonly log: Log;
  readonly demoTraffic: boolean;
  readonly opened: InstallationSecrets;
  readonly print: (text: string) => void;
  readonly startSimulatedProvider: PreparedParts['startSimulatedProvider'];
}

/** Serves an installation that contains something of its owner's: nothing is applied. */
export async function serveKept(place: DemoPlace, { simulatedProviderPort }: FoundDemo): Promise<Applied> {
  if (place.demoTraffic)
    throw new StartFault('--demo-traffic is for the demo, and this installation has a configuration of its own');
  place.print('Uses the configuration that was applied last; --config FILE applies another.');
  if (simulatedProviderPort !== null) await startKeptProvider(place, simulatedProviderPort);
  return NOTHING_APPLIED;
}

export async function serveDemo(postgres: Postgres, place: DemoPlace): Promise<Applied> {
  const simulatedProviderUrl = await place.startSimulatedProvider({ module: SIMULATED_PROVIDER_MODULE, args: [] });
  if (simulatedProviderUrl === null) return NOTHING_APPLIED;
  const applied = await applyDemo(postgres, place, simulatedProviderUrl);
  if (place.demoTraffic) await addDemoTraffic(postgres, place);
  return applied;
}

/**
 * The demo's models keep working beside what the owner added. Nothing is applied, so their provider must run on its
 * former port; if a program has taken that port, that program may be the provider.
 */
async function startKeptProvider({ startSimulatedProvider }: DemoPlace, port: string): Promise<void> {
  const claim = await claimPort('127.0.0.1', Number(port));
  if (claim === null) return;
  claim.release();
  await startSimulatedProvider({ module: SIMULATED_PROVIDER_MODULE, args: ['--port', port] });
}

/** The demo's file names a key without a secret; it gets this installation's own, which is the same at every start. */
async function applyDemo(
  postgres: Postgres,
  { config, environment, opened }: DemoPlace,
  simulatedProviderUrl: string,
): Promise<Applied> {
  const configuration = readConfigurationFile(DEMO_CONFIGURATION, {
    ...environment,
    SIMULATED_PROVIDER_URL: simulatedProviderUrl,
  });
  const secret = keepDemoKey(config.dataDirectory);
  const organizations = configuration.organizations.map((organization) => ({
    ...organization,
    keys: (organization.keys ?? []).map((key) => ({ ...key, secret: key.secret ?? secret })),
  }));
  await applyOrExplain(postgres, { ...configuration, organizations }, opened);
  const [demo] = organizations;
  // A key that was replaced or revoked is not accepted, so the banner leaves it out.
  const isServed = await isUsableKey(postgres, opened, { secret, nowMs: systemClock.nowMs() });
  return {
    isDemo: true,
    key: demo !== undefined && isServed ? { organization: demo.slug, name: demo.keys[0]?.name ?? '', secret } : null,
    model: findTriable(configuration),
    linkCode: config.console ? await openDemoConsole(postgres, opened) : null,
  };
}

async function addDemoTraffic(
  postgres: Postgres,
  { config, environment, log, opened, print }: DemoPlace,
): Promise<void> {
  // This file refers to entries of demo.yaml, which is applied, too.
  const configuration = readConfigurationFile(DEMO_TRAFFIC_CONFIGURATION, environment, 'later');
  await applyOrExplain(postgres, configuration, opened);
  const requests = await writeDemoHour({
    postgres,
    secrets: opened,
    dataDirectory: config.dataDirectory,
    virtualModel: virtualModelOf(config.brand).id,
    clock: systemClock,
    log,
  });
  print(
    requests === null
      ? 'No requests were made up: the demo has too little credit or budget left.'
      : `${requests} made-up requests of the past hour were written; the console shows them within a minute.`,
  );
}
