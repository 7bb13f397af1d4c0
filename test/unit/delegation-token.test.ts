// The token between gateway and jobs: good for one request, one scope, one minute, and under one key.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { mintDelegationToken, verifyDelegationToken } from '../../src/domain/identity/delegation-token.ts';
import type { ReportDelegation } from '../../src/domain/reports/report-delegation.ts';

const KEY = Buffer.from('a key of at least thirty-two characters');
const ORGANIZATION = '018f0000-0000-7000-8000-000000000001';
const DELEGATION: ReportDelegation = {
  report: 'requests',
  audience: 'me',
  scope: { organizationId: ORGANIZATION, userId: '018f0000-0000-7000-8000-000000000002' },
};
const REQUEST = { method: 'GET', target: '/v1/usage/me/requests?limit=5' };
const NOW = 1_795_000_000_000;
const EXPIRES = NOW + 60_000;

function minted(delegation: ReportDelegation = DELEGATION): string {
  const token = mintDelegationToken(KEY, delegation, REQUEST, EXPIRES);
  assert.ok(token !== null);
  return token;
}

function claims(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[2] ?? '', 'base64url').toString()) as Record<string, unknown>;
}

function withClaims(token: string, changed: object): string {
  const parts = token.split('.');
  return [parts[0], parts[1], Buffer.from(JSON.stringify(changed)).toString('base64url'), parts[3]].join('.');
}

describe('a delegation token', () => {
  test('says what was delegated, until it expires', () => {
    const token = minted();
    assert.deepEqual(verifyDelegationToken(KEY, token, REQUEST, NOW), DELEGATION);
    assert.deepEqual(verifyDelegationToken(KEY, token, REQUEST, EXPIRES - 1), DELEGATION);
    assert.equal(verifyDelegationToken(KEY, token, REQUEST, EXPIRES), 'expired');
    assert.match(token, /^[\x21-\x7e]{1,1500}$/);
  });

  test('of the platform names no organization', () => {
    const platform: ReportDelegation = { report: 'focus', audience: 'platform', scope: { organizationId: null } };
    assert.deepEqual(verifyDelegationToken(KEY, minted(platform), REQUEST, NOW), platform);
  });

  test('is good for no other method, path or query', () => {
    const token = minted();
    for (const other of [
      { method: 'POST', target: REQUEST.target },
      { method: 'GET', target: '/v1/usage/me/requests' },
      { method: 'GET', target: '/v1/usage/me/requests?limit=50' },
      { method: 'GET', target: '/v1/usage/me/requests?limit=5&user_id=x' },
      { method: 'GET', target: '/v1/admin/usage/requests?limit=5' },
      { method: 'GET', target: '' },
      { method: 'GET\n/v1/usage/me/requests?limit=5', target: '' },
    ]) {
      assert.equal(verifyDelegationToken(KEY, token, other, NOW), 'forged', JSON.stringify(other));
    }
  });

  test('is good for no other scope, audience, report or expiry', () => {
    const token = minted();
    const own = claims(token);
    for (const changed of [
      { ...own, scope: { organizationId: null } },
      { ...own, scope: { organizationId: ORGANIZATION } },
      { ...own, audience: 'platform' },
      { ...own, report: 'focus' },
    ]) {
      assert.equal(
        verifyDelegationToken(KEY, withClaims(token, changed), REQUEST, NOW),
        'forged',
        JSON.stringify(changed),
      );
    }
    const [version, expiry, payload, signature] = token.split('.');
    const later = [version, String(Number(expiry) + 1), payload, signature].join('.');
    assert.equal(verifyDelegationToken(KEY, later, REQUEST, NOW), 'forged');
  });

  test('under another key is none, nor is what only looks like one', () => {
    const token = minted();
    const [, expiry, payload] = token.split('.');
    assert.equal(
      verifyDelegationToken(Buffer.from('another key of thirty-two characters..'), token, REQUEST, NOW),
      'forged',
    );
    const unsigned = createHmac('sha256', '').update('').digest('base64url');
    for (const text of [
      '',
      'v1',
      'v1...',
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      token.slice(0, -43),
      ` ${token}`,
      `v1.${expiry}.${payload}.${unsigned}`,
      token.replace('v1', 'v2'),
      `v1.${'9'.repeat(40)}.${payload}.${'A'.repeat(43)}`,
      'x'.repeat(5_000),
    ]) {
      assert.equal(verifyDelegationToken(KEY, text, REQUEST, NOW), 'forged', text.slice(0, 60));
    }
  });

  test('that delegates what nobody can be given says so, though its signature is right', () => {
    const token = minted({ ...DELEGATION, report: 'request', requestId: 'no-uuid' });
    assert.equal(verifyDelegationToken(KEY, token, REQUEST, NOW), 'malformed');
  });

  test('every changed character is noticed', () => {
    const token = minted();
    for (let index = 0; index < token.length - 1; index += 1) {
      const other = token[index] === 'A' ? 'B' : 'A';
      const changed = token.slice(0, index) + other + token.slice(index + 1);
      assert.equal(verifyDelegationToken(KEY, changed, REQUEST, NOW), 'forged', `character ${index}`);
    }
  });

  test('cannot be made without a key', () => {
    assert.equal(mintDelegationToken(null, DELEGATION, REQUEST, EXPIRES), null);
    assert.equal(mintDelegationToken(Buffer.alloc(0), DELEGATION, REQUEST, EXPIRES), null);
  });
});
