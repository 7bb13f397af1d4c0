// Production does not start with empty, short or placeholder secrets, and says which, without repeating them.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { ConfigFault, type Environment, readConfig } from '../../src/config.ts';
import { refuseWeakSecrets } from '../../src/installation/production-secrets.ts';

const GOOD: Environment = {
  DATABASE_URL: 'postgres://db/tollgate',
  MASTER_KEY: randomBytes(32).toString('base64'),
  ADMIN_TOKEN: randomBytes(32).toString('base64url'),
  DELEGATION_KEY: randomBytes(32).toString('hex'),
};

function refusedSettings(environment: Environment): readonly string[] {
  try {
    const config = readConfig(environment);
    refuseWeakSecrets(environment, config);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigFault);
    for (const secret of [environment['MASTER_KEY'], environment['ADMIN_TOKEN'], environment['DELEGATION_KEY']])
      if (secret !== undefined && secret !== '') assert.ok(!error.message.includes(secret));
    return error.lines.map((line) => line.slice(0, line.indexOf(':')));
  }
}

describe('secrets in production', () => {
  test('random ones are good; without ADMIN_TOKEN and DELEGATION_KEY it starts too', () => {
    for (let round = 0; round < 200; round += 1) {
      assert.deepEqual(
        refusedSettings({
          ...GOOD,
          MASTER_KEY: randomBytes(32).toString('base64'),
          ADMIN_TOKEN: randomBytes(24).toString('base64url'),
        }),
        [],
      );
    }
    assert.deepEqual(refusedSettings({ DATABASE_URL: GOOD['DATABASE_URL'], MASTER_KEY: GOOD['MASTER_KEY'] }), []);
  });

  for (const [name, value] of [
    ['MASTER_KEY', ''],
    ['MASTER_KEY', 'c2hvcnQ='],
    ['MASTER_KEY', Buffer.alloc(32).toString('base64')],
    ['MASTER_KEY', Buffer.from('a phrase of 32 bytes, as typed..').toString('base64')],
    ['ADMIN_TOKEN', ''],
    ['ADMIN_TOKEN', 'admin'],
    ['ADMIN_TOKEN', 'Tw3nty-chars-random!'],
    ['ADMIN_TOKEN', 'x'.repeat(40)],
    ['ADMIN_TOKEN', 'please-change-me-please-change-me-now'],
    ['DELEGATION_KEY', ''],
    ['DELEGATION_KEY', 'short'],
    ['DELEGATION_KEY', '0123456789abcdef0123456789abcdef'],
  ] as const) {
    test(`${name}=${JSON.stringify(value)} is refused by name`, () =>
      assert.deepEqual(refusedSettings({ ...GOOD, [name]: value }), [name]));
  }

  test('all weak ones are named at once', () => {
    const weak = {
      ...GOOD,
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      ADMIN_TOKEN: 'a'.repeat(16),
      DELEGATION_KEY: 'd'.repeat(32),
    };
    assert.deepEqual(refusedSettings(weak), ['MASTER_KEY', 'ADMIN_TOKEN', 'DELEGATION_KEY']);
  });
});
