// What a process remembers of credentials: the oldest give way, and an id reaches exactly those that have it now.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownPrincipals } from '../../src/generation/identity/known-principals.ts';
import { principalOf } from '../support/principals.ts';

const principal = principalOf('organization', { apiKeyId: 'key', walletId: null, billed: false });

test('fifty thousand are remembered; one more puts out the one that was asked for longest ago', () => {
  const known = new KnownPrincipals();
  for (let index = 0; index < 50_000; index += 1)
    known.remember(`tg-${index}`, { ...principal, apiKeyId: `key ${index}` }, index);
  known.remember('tg-0', { ...principal, apiKeyId: 'key 0' }, 50_000);
  known.remember('tg-new', { ...principal, apiKeyId: 'new' }, 50_001);
  assert.equal(known.get('tg-1'), undefined);
  assert.notEqual(known.get('tg-0'), undefined);
  known.markChanged('key 1');
  known.markChanged('organization');
  assert.equal(known.get('tg-49999')?.state, 'changed');
});

test('an id reaches those that have it now: not who moved away, not who was put out', () => {
  const known = new KnownPrincipals();
  known.remember('tg-moved', { ...principal, teamId: 'old team' }, 1);
  known.remember('tg-moved', { ...principal, teamId: 'new team' }, 2);
  known.markChanged('old team');
  assert.equal(known.get('tg-moved')?.state, 'good');
  known.markAllUncertain();
  known.markChanged('new team');
  assert.equal(known.get('tg-moved')?.state, 'changed');
  known.markAllUncertain();
  assert.equal(known.get('tg-moved')?.state, 'changed', 'a change stays a change');
  known.remove('tg-moved');
  known.markChanged('new team');
  assert.equal(known.get('tg-moved'), undefined);
});
