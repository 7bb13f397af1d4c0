// The installation's secrets: made once, kept for their owner's eyes, never replaced when damaged.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { loadSecrets } from '../../src/installation/secrets.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const KEY = Buffer.alloc(32, 7);

describe('secrets', () => {
  test('made at the first start, found at the next, readable by their owner only', (context) => {
    const directory = temporaryDirectory(context);
    const config = readConfig({ DATA_DIR: directory });
    assert.equal(loadSecrets(config, { create: false }), null);
    const made = loadSecrets(config, { create: true });
    assert.equal(made?.masterKey.length, 32);
    assert.ok((made?.adminToken ?? '').length >= 16);
    assert.equal(statSync(join(directory, 'secrets.json')).mode & 0o777, 0o600);
    assert.deepEqual(loadSecrets(config, { create: false }), made);
    assert.deepEqual(loadSecrets(config, { create: true }), made);
  });

  test('what is given wins, and with a shared database nothing is kept', (context) => {
    const directory = temporaryDirectory(context);
    const config = readConfig({
      DATA_DIR: directory,
      DATABASE_URL: 'postgres://db/x',
      MASTER_KEY: KEY.toString('base64'),
    });
    const secrets = loadSecrets(config, { create: true });
    assert.deepEqual(secrets?.masterKey, KEY);
    assert.equal(secrets?.adminToken, null);
    assert.ok(!existsSync(join(directory, 'secrets.json')));
  });

  test('damaged ones are an error, not a reason to make others', (context) => {
    const directory = temporaryDirectory(context);
    const file = join(directory, 'secrets.json');
    for (const content of ['', '{', '{"master_key":"c2hvcnQ=","admin_token":"0123456789abcdef"}']) {
      writeFileSync(file, content);
      assert.throws(
        () => loadSecrets(readConfig({ DATA_DIR: directory }), { create: true }),
        /secrets\.json is damaged/,
      );
      assert.equal(readFileSync(file, 'utf8'), content);
    }
  });
});
