// Checks the names in a configuration file: names used twice, and references to something that neither the file nor the
// installation has. It reads the plain values and skips what has the wrong shape, which the schema reports, so that one
// run reports both kinds of mistakes.

import { checkPolicy, type PolicyModel } from '../routing/check-policy.ts';
import { DEFAULT_POLICY } from '../routing/routing-policy.ts';
import {
  type Entry,
  entries,
  entry,
  entryOf,
  findDuplicates,
  findUnknown,
  items,
  type Named,
  texts,
} from './file-entries.ts';
import type { Problem } from './problem.ts';

/** Names that an installation has already, so that a file need not contain them. */
export interface StoredNames {
  readonly providers: readonly string[];
  /** By id and by alias. */
  readonly models: ReadonlyMap<string, PolicyModel>;
  readonly modelIds: readonly string[];
  readonly policies: readonly string[];
  /** Guardrail policies of the platform. */
  readonly guardrails: readonly string[];
  /** By the organization's slug; e-mail addresses in lower case. */
  readonly organizations: ReadonlyMap<string, StoredOrganization>;
}

interface StoredOrganization {
  readonly teams: readonly string[];
  readonly users: readonly string[];
}

export const NOTHING_STORED: StoredNames = {
  providers: [],
  models: new Map(),
  modelIds: [],
  policies: [],
  guardrails: [],
  organizations: new Map(),
};

export function checkReferences(root: unknown, stored: StoredNames): Problem[] {
  const here = stored === NOTHING_STORED ? 'this file' : 'this file or the installation';
  const file = entryOf(root);
  const providers = entries(file, 'providers');
  const models = entries(file, 'models');
  const policies = entries(file, 'routing_policies');
  const guardrails = entries(file, 'guardrails');
  const organizations = entries(file, 'organizations');
  const modelNames = models.flatMap((model) => [...texts([model], 'id'), ...items(model, 'aliases')]);
  const policyModels = new Map([...stored.models, ...models.flatMap(policyModelsOf)]);
  return [
    ...findDuplicates(texts(providers, 'id'), 'provider'),
    ...findDuplicates(modelNames, 'model or alias'),
    ...findDuplicates(texts(policies, 'name'), 'routing policy'),
    ...findDuplicates(texts(guardrails, 'name'), 'guardrail policy'),
    ...findDuplicates(texts(organizations, 'slug'), 'organization'),
    ...findUnknown(
      models.flatMap((model) => texts(entries(model, 'served_by'), 'provider')),
      known(texts(providers, 'id'), stored.providers),
      'provider',
      here,
    ),
    ...policies.flatMap((policy) =>
      checkPolicy(policy, { models: policyModels, where: here, billedOrganizations: billedBy(policy, organizations) }),
    ),
    ...findUnknown(
      organizations.flatMap(policyOf),
      known(texts(policies, 'name'), stored.policies),
      'routing policy',
      here,
    ),
    ...findUnknown(
      organizations.flatMap(guardrailsOf),
      known(texts(guardrails, 'name'), stored.guardrails),
      'guardrail policy',
      here,
    ),
    ...organizations.flatMap((organization) => checkOrganization(organization, stored, here)),
    ...organizations.flatMap((organization) =>
      checkLimits(organization, known(texts(models, 'id'), stored.modelIds), here),
    ),
    ...findSharedSecrets(organizations),
  ];
}

/** The names in the file and the stored names. */
function known(names: readonly Named[], stored: readonly string[] = []): readonly Named[] {
  return [...names, ...stored.map((name) => ({ name, place: [] }))];
}

/** One entry for the model's id and one for each of its aliases. */
function policyModelsOf(model: Entry): [string, PolicyModel][] {
  const { kind = 'text' } = model.fields;
  const deployments = entries(model, 'served_by');
  const found = {
    kind: String(kind),
    isPriced: deployments.every(({ fields }) => fields['price'] !== undefined),
    isAskedByLogprobs: deployments.some(({ fields }) => fields['via'] === 'logprobs'),
  };
  return [...texts([model], 'id'), ...items(model, 'aliases')].map(({ name }) => [name, found]);
}

/** The policy that an organization routes by; the platform's default if it names none. */
function policyOf(organization: Entry): Named[] {
  return entry(organization, 'auto_routing').flatMap((routing) =>
    routing.fields['policy'] === undefined
      ? [{ name: DEFAULT_POLICY, place: routing.place }]
      : texts([routing], 'policy'),
  );
}

/** The guardrail policies that an organization, its teams and its keys name. */
function guardrailsOf(organization: Entry): Named[] {
  const own = entry(organization, 'guardrails');
  const below = [...entries(organization, 'teams'), ...entries(organization, 'keys')];
  return [
    ...texts(own, 'policy'),
    ...[...own, ...below.flatMap((one) => entry(one, 'guardrails'))].flatMap((one) => items(one, 'add')),
  ];
}

/** The organizations that the file bills and that route by a policy. */
function billedBy(policy: Entry, organizations: readonly Entry[]): string[] {
  const [name] = texts([policy], 'name');
  const users = organizations.filter(
    (organization) => organization.fields['billing'] === 'prepaid' && policyOf(organization)[0]?.name === name?.name,
  );
  return texts(users, 'slug').map(({ name: slug }) => slug);
}

/** Only for a new organization, the file has to say whether it is billed. */
function checkBilling({ fields, place }: Entry, stored: StoredOrganization | undefined): Problem[] {
  if (fields['billing'] !== undefined || stored !== undefined) return [];
  return [{ place: [...place, 'billing'], message: 'is missing', isDangling: true }];
}

function checkOrganization(organization: Entry, { organizations }: StoredNames, here: string): Problem[] {
  const stored = organizations.get(texts([organization], 'slug')[0]?.name ?? '');
  const users = entries(organization, 'users');
  const keys = entries(organization, 'keys');
  const teams = texts(entries(organization, 'teams'), 'slug');
  // E-mail addresses are compared without regard to case.
  const emails = texts(users, 'email').map(lowerCase);
  return [
    ...findDuplicates(teams, 'team'),
    ...findDuplicates(emails, 'user'),
    ...findDuplicates(texts(keys, 'name'), 'key'),
    ...checkBilling(organization, stored),
    ...findUnknown(
      users.flatMap((user) => items(user, 'teams')),
      known(teams, stored?.teams),
      'team',
      here,
    ),
    ...findUnknown(texts(keys, 'team'), known(teams, stored?.teams), 'team', here),
    ...findUnknown(texts(keys, 'user').map(lowerCase), known(emails, stored?.users), 'user', here),
  ];
}

/** Limits name models by their public id: an alias would make a second limit for the same model. */
function checkLimits(organization: Entry, modelIds: readonly Named[], here: string): Problem[] {
  const limits = entries(organization, 'limits');
  const named = limits.map(({ place, fields: { kind, window, model } }) => ({
    place,
    name: [kind, window, model].filter((part) => typeof part === 'string').join(' '),
  }));
  return [...findDuplicates(named, 'limit'), ...findUnknown(texts(limits, 'model'), modelIds, 'model', here)];
}

/** Two keys with one secret would be one credential for two payers. The message does not repeat the secret. */
function findSharedSecrets(organizations: readonly Entry[]): Problem[] {
  const seen = new Set<string>();
  return organizations
    .flatMap((organization) => texts(entries(organization, 'keys'), 'secret'))
    .flatMap(({ name, place }) => {
      if (seen.has(name)) return [{ place, message: 'another key has the same secret' }];
      seen.add(name);
      return [];
    });
}

function lowerCase({ name, place }: Named): Named {
  return { name: name.toLowerCase(), place };
}
