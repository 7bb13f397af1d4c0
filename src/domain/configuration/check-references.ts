// What the shape alone cannot say of a configuration file: names that stand twice, and names that nothing in the file has.
// It reads the file's plain values and skips what has the wrong shape, so that one run reports both kinds of mistakes.

import type { Place, Problem } from './problem.ts';

interface Entry {
  readonly place: Place;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Named {
  readonly name: string;
  readonly place: Place;
}

export function checkReferences(root: unknown): Problem[] {
  const file: Entry = { place: [], fields: isRecord(root) ? root : {} };
  const providers = entries(file, 'providers');
  const models = entries(file, 'models');
  const policies = entries(file, 'routing_policies');
  const organizations = entries(file, 'organizations');
  const modelNames = models.flatMap((model) => [...texts([model], 'id'), ...items(model, 'aliases')]);
  return [
    ...findDuplicates(texts(providers, 'id'), 'provider'),
    ...findDuplicates(modelNames, 'model or alias'),
    ...findDuplicates(texts(policies, 'name'), 'routing policy'),
    ...findDuplicates(texts(organizations, 'slug'), 'organization'),
    ...findUnknown(
      models.flatMap((model) => texts(entries(model, 'served_by'), 'provider')),
      texts(providers, 'id'),
      'provider',
    ),
    ...policies.flatMap((policy) => checkPolicy(policy, modelNames)),
    ...findUnknown(
      texts(
        organizations.flatMap((organization) => entry(organization, 'auto_routing')),
        'policy',
      ),
      texts(policies, 'name'),
      'routing policy',
    ),
    ...organizations.flatMap(checkOrganization),
    ...findSharedSecrets(organizations),
  ];
}

function checkPolicy(policy: Entry, modelNames: readonly Named[]): Problem[] {
  const tiers = entries(policy, 'tiers');
  const kinds = Object.keys(entry(policy, 'kinds')[0]?.fields ?? {}).map((kind) => ({ name: kind, place: policy.place }));
  const candidates = tiers.flatMap((tier) => entries(tier, 'models'));
  return [
    ...findDuplicates(texts(tiers, 'name'), 'tier'),
    ...findUnknown(texts([policy], 'fallback_tier'), texts(tiers, 'name'), 'tier'),
    ...findUnknown(texts(entry(policy, 'classifier'), 'model'), modelNames, 'model'),
    ...findUnknown(texts(candidates, 'id'), modelNames, 'model'),
    ...findUnknown(
      candidates.flatMap((candidate) => items(candidate, 'strengths')),
      kinds,
      'kind',
    ),
  ];
}

function checkOrganization(organization: Entry): Problem[] {
  const users = entries(organization, 'users');
  const keys = entries(organization, 'keys');
  const teams = texts(entries(organization, 'teams'), 'slug');
  // E-mail addresses are one whatever their case.
  const emails = texts(users, 'email').map(lowerCase);
  return [
    ...findDuplicates(teams, 'team'),
    ...findDuplicates(emails, 'user'),
    ...findDuplicates(texts(keys, 'name'), 'key'),
    ...findUnknown(
      users.flatMap((user) => items(user, 'teams')),
      teams,
      'team',
    ),
    ...findUnknown(texts(keys, 'team'), teams, 'team'),
    ...findUnknown(texts(keys, 'user').map(lowerCase), emails, 'user'),
  ];
}

/** Two keys with one secret would be one credential for two payers. The secret itself is not repeated. */
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

function findDuplicates(names: readonly Named[], what: string): Problem[] {
  const seen = new Set<string>();
  return names.flatMap(({ name, place }) => {
    if (seen.has(name)) return [{ place, message: `the ${what} "${name}" stands twice` }];
    seen.add(name);
    return [];
  });
}

function findUnknown(used: readonly Named[], known: readonly Named[], what: string): Problem[] {
  const names = new Set(known.map(({ name }) => name));
  return used.filter(({ name }) => !names.has(name)).map(({ name, place }) => ({ place, message: `there is no ${what} "${name}" in this file` }));
}

function lowerCase({ name, place }: Named): Named {
  return { name: name.toLowerCase(), place };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The mapping under a key, as a list of one; none when there is no mapping. */
function entry(parent: Entry, key: string): Entry[] {
  const value = parent.fields[key];
  return isRecord(value) ? [{ place: [...parent.place, key], fields: value }] : [];
}

function entries(parent: Entry, key: string): Entry[] {
  const value = parent.fields[key];
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) => (isRecord(item) ? [{ place: [...parent.place, key, index], fields: item }] : []));
}

/** The text under a key of each entry, where there is one. */
function texts(list: readonly Entry[], key: string): Named[] {
  return list.flatMap(({ place, fields }) => {
    const value = fields[key];
    return typeof value === 'string' ? [{ name: value, place: [...place, key] }] : [];
  });
}

/** The texts of the list under a key. */
function items(parent: Entry, key: string): Named[] {
  const value = parent.fields[key];
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) => (typeof item === 'string' ? [{ name: item, place: [...parent.place, key, index] }] : []));
}
