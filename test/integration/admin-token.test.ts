// ADMIN_TOKEN as long as the setting may be lets its holder in, and nothing near it does.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { testConfiguration } from '../support/test-configuration.ts';

/** 300 characters. */
const LONG_TOKEN = randomBytes(225).toString('base64url');

describe('a long ADMIN_TOKEN', () => {
  let tollgate: Front;
  before(async () => {
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }),
      env: { ADMIN_TOKEN: LONG_TOKEN },
    });
  });
  after(() => tollgate?.stop());

  const statusWith = async (credential: string) =>
    (await httpCall(`${tollgate.url}/v1/admin/organizations`, { headers: { authorization: `Bearer ${credential}` } }))
      .status;

  test('of 300 characters is accepted, cold and remembered', async () => {
    assert.equal(LONG_TOKEN.length, 300);
    for (let call = 0; call < 3; call += 1) assert.equal(await statusWith(LONG_TOKEN), 200);
  });

  test('is good as a whole: without its last character, or with one more, it is nobody’s', async () => {
    for (const other of [
      LONG_TOKEN.slice(0, -1),
      LONG_TOKEN.slice(0, 256),
      `${LONG_TOKEN}x`,
      'x'.repeat(4_096),
      'x'.repeat(4_097),
    ]) {
      assert.equal(await statusWith(other), 401, String(other.length));
    }
  });
});
