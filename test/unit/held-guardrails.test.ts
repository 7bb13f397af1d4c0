// The policies that a gateway holds: a change of one organization's compiles nobody else's anew, a changed secret is
// taken over, and what a request was begun with stays as it is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CompiledPolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { GuardrailTable } from '../../src/domain/guardrails/guardrail-table.ts';
import type { Policy } from '../../src/domain/guardrails/policy.ts';
import { preparedForUse } from '../../src/domain/guardrails/prepared-policy.ts';
import type { ScopedPrincipal } from '../../src/domain/identity/principal.ts';
import { CompiledSets } from '../../src/gateway/generation/compiled-sets.ts';
import { HeldGuardrails } from '../../src/gateway/generation/held-guardrails.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { silentLog } from '../support/silent-log.ts';
import { waitFor } from '../support/waiting.ts';

const NER = {
  name: 'ner',
  shape: 'webhook',
  url: 'https://ner.test/',
  deadlineMs: 800,
  onFailure: 'refuse',
  output: 'whole',
  model: null,
  language: 'en',
} as const;

function tableOf(versions: Readonly<Record<string, number>>, secret = 'a'): GuardrailTable {
  const policies = Object.entries(versions).map(([id, version]): [string, Policy] => [
    id,
    policyOf([ruleOf({ version, detect: ['email'] })], {
      id,
      version,
      externals: id === 'acme' ? [{ ...NER, secret }] : [],
    }),
  ]);
  const organizations = Object.keys(versions).map((id) => {
    const assignments = [{ policyId: id, teamId: null, keyId: null, setBy: 'platform' as const }];
    return [
      id,
      {
        onUnavailable: 'refuse' as const,
        exceptedTeams: new Set<string>(),
        exceptedKeys: new Set<string>(),
        assignments,
      },
    ] as const;
  });
  return { policies: new Map(policies), floor: [], organizations: new Map(organizations) };
}

const principalOf = (organizationId: string): ScopedPrincipal =>
  ({ organizationId, teamId: null, apiKeyId: `key of ${organizationId}` }) as unknown as ScopedPrincipal;

test('what changes is compiled anew, and nothing else', async () => {
  let table = tableOf({ acme: 1, other: 1 });
  let loads = 0;
  const load = async (): Promise<GuardrailTable> => {
    loads += 1;
    return table;
  };
  const held = await HeldGuardrails.load({ load, pepper: Buffer.alloc(32), log: silentLog });
  const acme = principalOf('acme');
  const other = principalOf('other');
  const compiled = (principal: ScopedPrincipal) => {
    const found = held.of(principal, 'messages');
    assert.ok(found !== null && !('unavailable' in found));
    return found;
  };
  const change = async (next: GuardrailTable): Promise<void> => {
    table = next;
    const before = loads;
    held.changed('acme');
    await waitFor(
      'the change to be loaded',
      () => loads,
      (count) => count > before,
    );
    await new Promise((resolve) => setImmediate(resolve));
  };
  const first = compiled(acme);
  const others = compiled(other);
  assert.equal(compiled(acme), first);

  await change(tableOf({ acme: 2, other: 1 }));
  const second = compiled(acme);
  assert.deepEqual([first.policies[0]?.version, second.policies[0]?.version], [1, 2]);
  assert.equal(compiled(other), others);

  await change(tableOf({ acme: 2, other: 1 }, 'b'));
  assert.equal(compiled(acme).policies[0]?.externals[0]?.secret, 'b');
  assert.equal(compiled(other), others);
  held.close();
});

test('who changes without a pause keeps nobody else’s change from being used, and has one load at a time', async () => {
  const waiting: ((table: GuardrailTable) => void)[] = [];
  let loads = 0;
  const load = (): Promise<GuardrailTable> => {
    loads += 1;
    return loads === 1
      ? Promise.resolve(tableOf({ acme: 1, other: 1 }))
      : new Promise((resolve) => waiting.push(resolve));
  };
  const held = await HeldGuardrails.load({ load, pepper: Buffer.alloc(32), log: silentLog });
  const versionOf = (organizationId: string): number | undefined => {
    const found = held.of(principalOf(organizationId), 'messages');
    assert.ok(found !== null && !('unavailable' in found));
    return found.policies[0]?.version;
  };
  held.changed('other');
  for (let change = 0; change < 100; change += 1) held.changed('acme');
  assert.equal(waiting.length, 1);

  waiting[0]?.(tableOf({ acme: 2, other: 2 }));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([versionOf('other'), versionOf('acme')], [2, 2]);

  for (let change = 0; change < 100; change += 1) held.changed('acme');
  await waitFor(
    'what has changed meanwhile to be loaded',
    () => waiting.length,
    (count) => count === 2,
  );
  waiting[1]?.(tableOf({ acme: 102, other: 2 }));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(versionOf('acme'), 102);
  held.close();
});

test('where changes may have been missed and cannot be loaded, what is held screens on until they are', async () => {
  let table = tableOf({ acme: 1 });
  let isAway = false;
  let loads = 0;
  const load = async (): Promise<GuardrailTable> => {
    loads += 1;
    if (isAway) throw new Error('away');
    return table;
  };
  const held = await HeldGuardrails.load({ load, pepper: Buffer.alloc(32), log: silentLog });
  const versionOf = (organizationId: string): number | string | null => {
    const found = held.ofOrganization(organizationId, 'messages');
    if (found === null) return null;
    return 'unavailable' in found ? found.unavailable : (found.policies[0]?.version ?? null);
  };
  isAway = true;
  held.mayHaveChanged();
  await waitFor(
    'the load to fail',
    () => loads,
    (count) => count === 2,
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([versionOf('acme'), versionOf('without any')], [1, null]);

  // A change that is known is another matter.
  held.changed('acme');
  await waitFor(
    'the change to be loaded in vain',
    () => versionOf('acme'),
    (found) => found === 'refuse',
  );
  assert.equal(versionOf('without any'), null);

  isAway = false;
  table = tableOf({ acme: 2 });
  await waitFor(
    'what may have changed to be loaded',
    () => versionOf('acme'),
    (version) => version === 2,
  );
  held.close();
});

/** Each of these keys of an organization has a policy of its own beside what all have. */
function tableOfKeys(organization: string, keys: number, words: readonly string[]): GuardrailTable {
  const policy = (id: string, found: readonly string[]): [string, Policy] => [
    id,
    policyOf([ruleOf({ words: found })], { id, organizationId: organization }),
  ];
  const policies = new Map([policy('common', words)]);
  for (let key = 0; key < keys; key += 1) policies.set(...policy(`policy ${key}`, [`word ${key}`]));
  const assignments = [...policies.keys()].map((policyId) => ({
    policyId,
    teamId: null,
    keyId: policyId === 'common' ? null : policyId.replace('policy', 'key'),
    setBy: 'organization' as const,
  }));
  const own = { onUnavailable: 'refuse' as const, exceptedTeams: new Set<string>(), exceptedKeys: new Set<string>() };
  return { policies, floor: [], organizations: new Map([[organization, { ...own, assignments }]]) };
}

test('words are prepared a slice at a time before they are in force, and once for all keys and APIs', async () => {
  const words = Array.from({ length: 10_000 }, (_, index) => `customer ${(index * 7_919) % 10_000}`);
  const table = tableOfKeys('acme', 2, words);
  const common = table.policies.get('common') as Policy;
  let turns = 0;
  let isLoading = true;
  const turn = (): void => {
    turns += 1;
    if (isLoading) setImmediate(turn);
  };
  setImmediate(turn);
  const held = await HeldGuardrails.load({ load: async () => table, pepper: Buffer.alloc(32), log: silentLog });
  isLoading = false;
  assert.ok(turns > 20, `${turns} turns of the event loop while 10,000 words were prepared`);
  assert.equal(preparedForUse(common).next().done, true);
  const searches = ['key 0', 'key 1'].flatMap((apiKeyId) =>
    (['messages', 'responses'] as const).map((api) => {
      const found = held.of({ organizationId: 'acme', teamId: null, apiKeyId } as ScopedPrincipal, api);
      assert.ok(found !== null && !('unavailable' in found));
      return found.input?.words[0]?.search;
    }),
  );
  assert.ok(searches[0] !== undefined && new Set(searches).size === 1);
  held.close();
});

test('an organization with many sets of policies has none of another’s compiled anew', async () => {
  const many = tableOfKeys('acme', 300, ['falcon']);
  const other = tableOf({ other: 1 });
  const table: GuardrailTable = {
    policies: new Map([...many.policies, ...other.policies]),
    floor: [],
    organizations: new Map([...many.organizations, ...other.organizations]),
  };
  const held = await HeldGuardrails.load({ load: async () => table, pepper: Buffer.alloc(32), log: silentLog });
  const others = held.of(principalOf('other'), 'messages');
  for (let key = 0; key < 300; key += 1)
    held.of({ organizationId: 'acme', teamId: null, apiKeyId: `key ${key}` } as ScopedPrincipal, 'messages');
  assert.equal(held.of(principalOf('other'), 'messages'), others);
  held.close();
});

test('where many organizations have one set each, those in use stay, also two of one of them', () => {
  const sets = new CompiledSets();
  const put = (organization: string, name: string) =>
    sets.set(organization, { key: `${name} ${organization}` } as CompiledPolicy);
  for (let index = 0; index < 255; index += 1) put(`idle ${index}`, 'messages');
  put('active', 'messages');
  put('active', 'responses');
  for (let index = 0; index < 100; index += 1) {
    assert.ok(sets.get('messages active') !== undefined && sets.get('responses active') !== undefined);
    put(`newer ${index}`, 'messages');
  }
  assert.equal(sets.get('messages idle 0'), undefined);
});

test('a policy that cannot be prepared keeps nobody else’s from being in force', async () => {
  const good = tableOf({ other: 1 });
  const broken = {
    ...good.policies.values().next().value,
    id: 'broken',
    name: 'broken',
    rules: null,
  } as unknown as Policy;
  const table: GuardrailTable = { ...good, policies: new Map([...good.policies, ['broken', broken]]), floor: [] };
  const organizations = new Map(table.organizations).set('acme', {
    onUnavailable: 'refuse',
    assignments: [{ ...table.organizations.get('other')?.assignments[0], policyId: 'broken' }],
  } as never);
  const load = async () => ({ ...table, organizations });
  const held = await HeldGuardrails.load({ load, pepper: Buffer.alloc(32), log: silentLog });
  assert.notEqual(held.of(principalOf('other'), 'messages'), null);
  held.close();
});
