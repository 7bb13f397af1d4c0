// `tollgate own-key`: manages organizations' own provider keys. A secret is read from an environment variable or from
// standard input, never from an argument, which every user of the machine could see.

import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import type { Environment } from '../config.ts';
import { ownKeySchema } from '../domain/configuration/schema/own-key-schema.ts';
import { destinationOf } from '../domain/models/key-destination.ts';
import type { RotatedSecret } from '../domain/own-keys/key-changes.ts';
import { isKeyProblem, isOpen, ownProvider } from '../domain/own-keys/key-kinds.ts';
import type { OwnKey } from '../domain/own-keys/own-key.ts';
import { shownState } from '../domain/own-keys/shown-state.ts';
import { JSON_TYPES, wordsOf } from '../domain/refusals/issue-words.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { EgressGuard } from '../platform/egress/egress-guard.ts';
import { MetricsRegistry } from '../platform/metrics.ts';
import { loadCatalog } from '../storage/postgres/catalog/catalog-store.ts';
import type { InstallationSecrets } from '../storage/postgres/installation-secrets.ts';
import { readByokSettings } from '../storage/postgres/own-keys/byok-settings.ts';
import { listOwnKeys } from '../storage/postgres/own-keys/list-own-keys.ts';
import { createOwnKey, removeOwnKey, rotateOwnKey, updateOwnKey } from '../storage/postgres/own-keys/own-keys.ts';
import type { Postgres } from '../storage/postgres/pool.ts';
import { OwnKeyVerifier } from '../upstream/own-key-verifier.ts';
import { ProviderCalls } from '../upstream/providers.ts';
import {
  type Command,
  type CommandContext,
  chooseAction,
  parseArguments,
  requireOption,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization } from './command/identity.ts';

export const ownKeyCommand: Command = {
  usage: [
    'tollgate own-key create --organization SLUG --kind KIND --name NAME [--secret-from VARIABLE] ' +
      '[--settings NAME=VALUE,...] [--base-url URL] [--place before|after] [--fallback inherit|on|off] ' +
      '[--models ID,ID] [--no-verify]',
    'tollgate own-key rotate --organization SLUG --name NAME [--secret-from VARIABLE] [--overlap SECONDS] ' +
      '[--no-verify]',
    'tollgate own-key enable|disable|remove --organization SLUG --name NAME',
    'tollgate own-key list --organization SLUG',
  ],
  summary:
    'Stores an organization’s own provider key, gives one another secret, turns one on or off, removes one, or ' +
    'lists them. The secret is read from the named environment variable, otherwise from standard input.',
  run,
};

const OPTIONS = {
  organization: { type: 'string' },
  kind: { type: 'string' },
  name: { type: 'string' },
  'secret-from': { type: 'string' },
  settings: { type: 'string' },
  'base-url': { type: 'string' },
  place: { type: 'string' },
  fallback: { type: 'string' },
  models: { type: 'string' },
  overlap: { type: 'string' },
  'no-verify': { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArguments<typeof OPTIONS>>['values'];
interface Work {
  readonly postgres: Postgres;
  readonly secrets: InstallationSecrets;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly values: Values;
  readonly verifier: OwnKeyVerifier;
}

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const perform = chooseAction(positionals, ACTIONS);
  const slug = requireOption(values.organization, 'organization');
  const lines = await withDatabase(environment, async (postgres, config, openSecrets) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const egress = new EgressGuard({ anyPort: false, allowPrivate: false, allowed: config.egressAllow });
    const { upstreamClient: client, proxies } = config;
    const calls = new ProviderCalls(new MetricsRegistry(), systemClock, { client, proxies, egress });
    const verifier = new OwnKeyVerifier(calls, systemClock);
    try {
      const secrets = await openSecrets();
      return await perform({ postgres, secrets, organizationId, environment, values, verifier });
    } finally {
      await calls.close();
    }
  });
  for (const line of lines) print(line);
  return 0;
}

const ACTIONS: Readonly<Record<string, (work: Work) => Promise<readonly string[]>>> = {
  create,
  rotate,
  enable: (work) => turn(work, true),
  disable: (work) => turn(work, false),
  remove,
  list: async (work) => linesOf(work, await listOwnKeys(work.postgres, work.organizationId)),
};

async function linesOf({ postgres, secrets }: Work, keys: readonly OwnKey[]): Promise<readonly string[]> {
  const catalog = await loadCatalog(postgres, secrets.box);
  return keys.map((key) => {
    const { id, kind, name, label, fingerprint, place } = key;
    const { state, reason } = shownState(key, catalog, systemClock.nowMs());
    return [id, kind, name, label ?? '', fingerprint, place, state, reason ?? ''].join('\t');
  });
}

async function create(work: Work): Promise<readonly string[]> {
  const { postgres, secrets, organizationId, environment, values } = work;
  const name = requireOption(values.name, 'name');
  const read = ownKeySchema.safeParse({
    kind: requireOption(values.kind, 'kind'),
    name,
    secret: readSecret(values, environment),
    ...(values.place === undefined ? {} : { place: values.place }),
    ...(values.fallback === undefined ? {} : { fallback: values.fallback }),
    ...(values.models === undefined ? {} : { models: values.models.split(',') }),
    ...(values.settings === undefined ? {} : { settings: readSettings(values.settings) }),
    ...(values['base-url'] === undefined ? {} : { base_url: values['base-url'] }),
  });
  if (!read.success) {
    const [issue] = read.error.issues as [z.core.$ZodIssue];
    throw new UsageFault(`--${issue.path.join('.').replace('_', '-')}: ${wordsOf(issue, JSON_TYPES)}`);
  }
  const key = read.data;
  const { verdict, givenFor } = await askProvider(work, key, key.secret);
  const everybody = { teams: null, apiKeys: null, users: null, expiresAtMs: null };
  const made = await createOwnKey(postgres, secrets, commandActor(environment), {
    ...key,
    ...everybody,
    organizationId,
    givenFor,
    verdict,
  });
  return linesOf(work, [expectDone(made, `own key "${name}"`)]);
}

async function rotate(work: Work): Promise<readonly string[]> {
  const { postgres, secrets, environment, values } = work;
  const key = await findKey(work);
  const overlap = values.overlap ?? '0';
  if (!/^\d{1,7}$/.test(overlap))
    throw new UsageFault(`--overlap: must be a whole number of seconds, got "${overlap}"`);
  const secret = readSecret(values, environment);
  const { verdict, givenFor } = await askProvider(work, key, secret);
  const rotated = { secret, givenFor, overlapSeconds: Number(overlap), verdict };
  const done = await rotateOwnKey(postgres, secrets, commandActor(environment), referenceOf(key), rotated);
  return linesOf(work, [expectDone(done, `own key "${key.name}"`)]);
}

async function turn(work: Work, isEnabled: boolean): Promise<readonly string[]> {
  const key = await findKey(work);
  const actor = commandActor(work.environment);
  const turned = await updateOwnKey(work.postgres, actor, referenceOf(key), { isEnabled });
  return linesOf(work, [expectDone(turned, key.name)]);
}

async function remove(work: Work): Promise<readonly string[]> {
  const key = await findKey(work);
  expectDone(await removeOwnKey(work.postgres, commandActor(work.environment), referenceOf(key)), key.name);
  return [`own key "${key.name}" is removed`];
}

async function findKey({ postgres, organizationId, values }: Work): Promise<OwnKey> {
  const name = requireOption(values.name, 'name');
  const found = (await listOwnKeys(postgres, organizationId)).find((key) => key.name === name);
  if (found === undefined) throw new StartFault(`there is no own key "${name}"`);
  return found;
}

function referenceOf({ id, organizationId }: OwnKey): { readonly organizationId: string; readonly keyId: string } {
  return { organizationId, keyId: id };
}

/**
 * Asks the provider whether it accepts a new secret. Nothing is sent to a provider for which the organization may not
 * have a key.
 */
async function askProvider(
  { postgres, secrets, organizationId, values, verifier }: Work,
  key: Pick<OwnKey, 'kind' | 'settings' | 'baseUrl'>,
  secret: string,
): Promise<Pick<RotatedSecret, 'verdict' | 'givenFor'>> {
  const catalog = await loadCatalog(postgres, secrets.box);
  const own = ownProvider(catalog, key.kind, key);
  if (isKeyProblem(own)) throw new StartFault(`${own.field} ${own.reason}`);
  const problem = verifier.addressProblem(own);
  if (problem !== null) throw new StartFault(`base_url ${problem}`);
  const givenFor = destinationOf(own.provider);
  const settings = await readByokSettings(postgres, organizationId);
  if (values['no-verify'] || !settings.enabled || !isOpen(key.kind, settings))
    return { verdict: { state: 'unverified', reason: null }, givenFor };
  const verdict = await verifier.verify(own, secret);
  if (verdict === null || verdict.state === 'invalid')
    throw new StartFault(
      `${verdict?.reason ?? 'the provider does not answer'}; --no-verify stores the key all the same`,
    );
  return { verdict, givenFor };
}

function readSecret({ 'secret-from': variable }: Values, environment: Environment): string {
  const secret = variable === undefined ? readFileSync(0, 'utf8').trim() : environment[variable];
  if (secret === undefined || secret === '')
    throw new UsageFault(`--secret-from: there is no secret in ${variable ?? 'the standard input'}`);
  return secret;
}

function readSettings(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').map((pair) => pair.split('='));
  if (pairs.some((pair) => pair.length !== 2))
    throw new UsageFault(`--settings: must be NAME=VALUE with commas between, got "${text}"`);
  return Object.fromEntries(pairs as [string, string][]);
}
