// Checks the names in a configuration file: names used twice, and references to something that the file does not
// define. It reads the plain values and skips what has the wrong shape, which the schema reports, so that one run
// reports both kinds of mistakes.

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

const HERE = 'this file';

export function checkReferences(root: unknown): Problem[] {
  const file = entryOf(root);
  const providers = entries(file, 'providers');
  const models = entries(file, 'models');
  const policies = entries(file, 'routing_policies');
  const organizations = entries(file, 'organizations');
  const modelNames = models.flatMap((model) => [...texts([model], 'id'), ...items(model, 'aliases')]);
  const policyModels = new Map(models.flatMap(policyModelsOf));
  return [
    ...findDuplicates(texts(providers, 'id'), 'provider'),
    ...findDuplicates(modelNames, 'model or alias'),
    ...findDuplicates(texts(policies, 'name'), 'routing policy'),
    ...findDuplicates(texts(organizations, 'slug'), 'organization'),
    ...findUnknown(
      models.flatMap((model) => texts(entries(model, 'served_by'), 'provider')),
      texts(providers, 'id'),
      'provider',
      HERE,
    ),
    ...policies.flatMap((policy) =>
      checkPolicy(policy, { models: policyModels, where: HERE, billedOrganizations: billedBy(policy, organizations) }),
    ),
    ...findUnknown(organizations.flatMap(policyOf), texts(policies, 'name'), 'routing policy', HERE),
    ...organizations.flatMap(checkOrganization),
    ...organizations.flatMap((organization) => checkLimits(organization, texts(models, 'id'))),
    ...findSharedSecrets(organizations),
  ];
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

/** The policy that an organization routes by: the platform's default where it names none. */
function policyOf(organization: Entry): Named[] {
  return entry(organization, 'auto_routing').flatMap((routing) =>
    routing.fields['policy'] === undefined
      ? [{ name: DEFAULT_POLICY, place: routing.place }]
      : texts([routing], 'policy'),
  );
}

/** The billed organizations that route by a policy. */
function billedBy(policy: Entry, organizations: readonly Entry[]): string[] {
  const [name] = texts([policy], 'name');
  const users = organizations.filter(
    (organization) => organization.fields['billing'] === 'prepaid' && policyOf(organization)[0]?.name === name?.name,
  );
  return texts(users, 'slug').map(({ name: slug }) => slug);
}

function checkOrganization(organization: Entry): Problem[] {
  const users = entries(organization, 'users');
  const keys = entries(organization, 'keys');
  const teams = texts(entries(organization, 'teams'), 'slug');
  // E-mail addresses are compared without regard to case.
  const emails = texts(users, 'email').map(lowerCase);
  return [
    ...findDuplicates(teams, 'team'),
    ...findDuplicates(emails, 'user'),
    ...findDuplicates(texts(keys, 'name'), 'key'),
    ...findUnknown(
      users.flatMap((user) => items(user, 'teams')),
      teams,
      'team',
      HERE,
    ),
    ...findUnknown(texts(keys, 'team'), teams, 'team', HERE),
    ...findUnknown(texts(keys, 'user').map(lowerCase), emails, 'user', HERE),
  ];
}

/** Limits name models by their public id: an alias would make a second limit for the same model. */
function checkLimits(organization: Entry, modelIds: readonly Named[]): Problem[] {
  const limits = entries(organization, 'limits');
  const named = limits.map(({ place, fields: { kind, window, model } }) => ({
    place,
    name: [kind, window, model].filter((part) => typeof part === 'string').join(' '),
  }));
  return [...findDuplicates(named, 'limit'), ...findUnknown(texts(limits, 'model'), modelIds, 'model', HERE)];
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
