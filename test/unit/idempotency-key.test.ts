// Whose requests share an idempotency key at a provider: those of one organization that the same wallet pays for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersFor } from '../../src/generation/reply/idempotency-key.ts';
import { providerAt } from '../support/plane-in-process.ts';

const PROVIDER = providerAt('http://127.0.0.1:9');

function keyOf(organizationId: string, walletId: string | null, key = 'order-1'): string | undefined {
  const headers = headersFor(['idempotency-key', key], PROVIDER, { organizationId, walletId });
  assert.ok(Array.isArray(headers));
  return headers[1];
}

test('an organization and a wallet have keys of their own, and each stays the same', () => {
  const owners = [
    ['one', 'first'],
    ['one', 'second'],
    ['one', null],
    ['other', 'first'],
    ['other', null],
  ] as const;
  const keys = owners.map(([organizationId, walletId]) => keyOf(organizationId, walletId));
  assert.equal(new Set(keys).size, owners.length);
  assert.deepEqual(
    owners.map(([organizationId, walletId]) => keyOf(organizationId, walletId)),
    keys,
  );
  assert.notEqual(keyOf('one', 'first', 'order-2'), keys[0]);
});
