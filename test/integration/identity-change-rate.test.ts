// A member who makes keys as fast as they can is told to wait; reading, ending, everybody else and the operator are not
// kept waiting.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, type Person, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const PER_MINUTE = 10;
const TRIED = 200;

describe('the rate of changes', () => {
  let tollgate: Front;
  let tenant: Tenant;
  let member: Person;

  before(async () => {
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }),
      env: { ADMIN_TOKEN, CHANGES_PER_MINUTE: String(PER_MINUTE) },
    });
    tenant = await Tenant.create(tollgate.url, 'hasty', 'prepaid');
    member = await tenant.addPerson('member');
  });
  after(() => tollgate?.stop());

  const call = (credential: string, method: string, path: string, body?: object) =>
    httpCall(`${tollgate.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const makeKey = (name: string) => call(member.token, 'POST', '/v1/me/keys', { name });

  test(
    'most of two hundred keys at once are refused with 429, in the platform envelope and with the time ' + 'to wait',
    async () => {
      const replies = await Promise.all(Array.from({ length: TRIED }, (_, index) => makeKey(`key ${index}`)));
      const made = replies.filter(({ status }) => status === 201).length;
      const refused = replies.filter(({ status }) => status === 429);
      assert.equal(made + refused.length, TRIED);
      assert.ok(made >= PER_MINUTE && made < TRIED / 2, `${made} were made`);
      for (const { headers, body } of refused) {
        const { code, error } = JSON.parse(body.toString()) as Record<string, unknown>;
        assert.match(String(code), /^[0-9a-f]{8}$/);
        assert.match(String(error), /come faster than they may/);
        assert.match(headers['retry-after'] ?? '', /^[1-6]$/);
      }
    },
  );

  test('meanwhile the member reads and ends keys', async () => {
    const keys = (await ask(tollgate.url, member.token, 'GET', '/v1/me/keys')) as unknown as readonly { id: string }[];
    assert.ok(keys.length >= PER_MINUTE);
    for (const { id } of keys.slice(0, PER_MINUTE))
      assert.notEqual((await ask(tollgate.url, member.token, 'DELETE', `/v1/me/keys/${id}`))['revoked_at'], null);
  });

  test(
    'meanwhile another person of the organization, another organization and the operator change what ' + 'they like',
    async () => {
      await tenant.addTeam();
      for (let index = 0; index < 5 * PER_MINUTE; index += 1) {
        const order = { slug: `made-${index}`, billing: 'none' };
        await ask(tollgate.url, ADMIN_TOKEN, 'POST', '/v1/admin/organizations', order, 201);
      }
      await (await Tenant.create(tollgate.url, 'patient')).addTeam();
    },
  );

  test('who may not do it at all is told so, and not to wait', async () => {
    for (let index = 0; index < 3 * PER_MINUTE; index += 1) {
      const reply = await call(member.token, 'POST', '/v1/admin/active-org/teams', { slug: `team-${index}` });
      assert.equal(reply.status, 403);
    }
  });
});
