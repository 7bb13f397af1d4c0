// The groups of a person in what an OpenID provider says. Who has none loses what groups gave: none is never guessed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { groupsIn } from '../../src/domain/identity/sign-in-provider.ts';

const PROVIDER = { groups_claim: 'https://acme.test/groups' };
const of = (groups: unknown) => groupsIn({ [PROVIDER.groups_claim]: groups }, PROVIDER);

describe('groups', () => {
  const rows: readonly (readonly [what: string, groups: unknown, found: readonly string[]])[] = [
    ['are a list', ['a', 'b'], ['a', 'b']],
    ['are one name', 'a b,c', ['a b,c']],
    ['are none', [], []],
    ['are names alone', ['a', 7, null, ['b'], { name: 'c' }], ['a']],
    ['of a form that nobody knows are none', { a: true }, []],
    ['that are not told are none', undefined, []],
  ];
  for (const [what, groups, found] of rows) test(what, () => assert.deepEqual(of(groups), found));

  test('that are named elsewhere are not none', () => {
    const elsewhere = { _claim_names: { [PROVIDER.groups_claim]: 'src1' } };
    assert.throws(() => groupsIn(elsewhere, PROVIDER), /too many groups/);
    assert.deepEqual(groupsIn({ _claim_names: { address: 'src1' } }, PROVIDER), []);
    assert.deepEqual(groupsIn({ _claim_names: null }, PROVIDER), []);
  });
});
