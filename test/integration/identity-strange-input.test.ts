// Strange text in every field of the identity API of a whole installation: refused by field or kept verbatim, never a
// fault. And nobody climbs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, type Person, Tenant } from '../support/identity-world.ts';
import { testConfiguration } from '../support/test-configuration.ts';

/** Kept as they are: odd, but text. */
const KEPT = [
  "'; DROP TABLE organizations; --",
  `" OR ""="`,
  '$(reboot) `id` ${7*7} {{7*7}} <script>alert(1)</script>',
  '\\x00 \\u0000 %00 %0d%0a',
  'null',
  '🚦 日本語 ﷺ é',
  'x'.repeat(200),
];
/** Refused with the field's name. */
const REFUSED = ['', 'x'.repeat(201), 'a\r\nset-cookie: b=c', 'nul\u0000', 'lone \ud800', '\u202e', '\u0007', '\u2028'];

describe('the identity API, given strange text', () => {
  let tollgate: Front;
  let tenant: Tenant;

  before(async () => {
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }),
      env: { ADMIN_TOKEN },
    });
    tenant = await Tenant.create(tollgate.url, 'strange');
  });
  after(() => tollgate?.stop());

  async function send(method: string, path: string, body: object, credential = tenant.owner.token) {
    const reply = await httpCall(`${tollgate.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}` },
      body: JSON.stringify(body),
    });
    return {
      status: reply.status,
      body: JSON.parse(reply.body.toString()) as { data?: Record<string, unknown>; error?: string },
    };
  }

  test('names are kept verbatim, and read back so', async () => {
    const team = await tenant.addTeam();
    const key = await tenant.addKey();
    for (const text of KEPT) {
      assert.equal((await tenant.as('PATCH', `/teams/${team}`, { display_name: text }))['display_name'], text);
      assert.equal((await tenant.as('GET', `/teams/${team}`))['display_name'], text);
      await tenant.as('PATCH', `/keys/${key.id}`, { name: text });
      assert.equal((await tenant.as('GET', `/keys/${key.id}`))['name'], text);
      const organization = `/v1/admin/organizations/${tenant.id}`;
      await ask(tollgate.url, ADMIN_TOKEN, 'PATCH', organization, { display_name: text });
      assert.equal((await ask(tollgate.url, ADMIN_TOKEN, 'GET', organization))['display_name'], text);
      assert.equal(
        (await ask(tollgate.url, tenant.owner.token, 'POST', '/v1/me/tokens', { name: text }, 201))['name'],
        text,
      );
    }
  });

  test('what is no text is refused, naming the field', async () => {
    const team = await tenant.addTeam();
    const key = await tenant.addKey();
    const fields = [
      ['PATCH', `/v1/admin/active-org/teams/${team}`, 'display_name'],
      ['PATCH', `/v1/admin/active-org/teams/${team}`, 'slug'],
      ['PATCH', `/v1/admin/active-org/keys/${key.id}`, 'name'],
      ['PATCH', `/v1/admin/active-org/keys/${key.id}`, 'expires_at'],
      ['POST', '/v1/admin/active-org/members', 'email'],
      ['POST', '/v1/admin/active-org/teams', 'slug'],
      ['POST', '/v1/me/tokens', 'name'],
    ] as const;
    for (const [method, path, field] of fields) {
      for (const text of REFUSED) {
        const { status, body } = await send(method, path, { [field]: text });
        assert.equal(status, 400, `${method} ${path} ${JSON.stringify(text).slice(0, 40)}`);
        assert.match(body.error ?? '', new RegExp(field));
      }
    }
  });

  test('numbers, dates and amounts at and over their edges never fault', async () => {
    const key = await tenant.addKey();
    const bodies: readonly (readonly [string, string, object, readonly number[]])[] = [
      ...['0', '0.000000000001', '99999999999999999999999999'].map(
        (limit) => ['PUT', '/v1/admin/active-org/limits', budget(limit), [200, 400]] as const,
      ),
      ...['-1', '1e5', 'NaN', '', '0x10', ' 1', '1'.repeat(5_000)].map(
        (limit) => ['PUT', '/v1/admin/active-org/limits', budget(limit), [400]] as const,
      ),
      ...[0, Number.MAX_SAFE_INTEGER].map(
        (limit) => ['PUT', '/v1/admin/active-org/limits', rate(limit), [200]] as const,
      ),
      ...[-1, 1.5, 1e300, '5', null].map(
        (limit) => ['PUT', '/v1/admin/active-org/limits', rate(limit), [400]] as const,
      ),
      ...[
        '0001-01-01T00:00:00Z',
        '9999-12-31T23:59:59Z',
        '2026-02-30T00:00:00Z',
        '2026-01-01',
        '+275760-09-13T00:00:00Z',
      ].map((expires_at) => ['PATCH', `/v1/admin/active-org/keys/${key.id}`, { expires_at }, [200, 400]] as const),
      ['PATCH', `/v1/admin/active-org/keys/${key.id}`, { expires_at: '2020-01-01T00:00:00Z' }, [400]],
      ['POST', '/v1/admin/active-org/keys', { name: 'late', expires_at: '2020-01-01T00:00:00Z' }, [400]],
      ['PUT', '/v1/admin/active-org/model-access', { allowed_models: ['no/such'] }, [400]],
      ['PUT', '/v1/admin/active-org/model-access', { allowed_models: [] }, [200, 400]],
      ['PUT', '/v1/admin/active-org/model-access', { allowed_models: null }, [200]],
      ['POST', `/v1/admin/active-org/keys/${key.id}/rotate`, { overlap_seconds: 1e9 }, [400]],
    ];
    for (const [method, path, body, statuses] of bodies) {
      const reply = await send(method, path, body);
      assert.ok(
        statuses.includes(reply.status),
        `${method} ${path} ${JSON.stringify(body).slice(0, 80)}: ${reply.status} ${JSON.stringify(reply.body)}`,
      );
    }
  });

  test('cursors are the API’s own: one that is made up is refused, and pages end', async () => {
    for (const cursor of [
      'x',
      'MTIz',
      Buffer.from("1.'; DROP TABLE keys--").toString('base64url'),
      Buffer.from('9999999999999999.00000000-0000-0000-0000-000000000000').toString('base64url'),
    ]) {
      for (const path of ['keys', 'teams', 'members', 'audit']) {
        const url = `${tollgate.url}/v1/admin/active-org/${path}?cursor=${cursor}`;
        const reply = await httpCall(url, { headers: { authorization: `Bearer ${tenant.owner.token}` } });
        assert.ok(reply.status === 400 || reply.status === 200, `${path} ${cursor}: ${reply.status}`);
      }
    }
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const url: string = `${tollgate.url}/v1/admin/active-org/audit?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const reply = await httpCall(url, { headers: { authorization: `Bearer ${tenant.owner.token}` } });
      const page = JSON.parse(reply.body.toString()) as { data: { id: string }[]; next_cursor: string | null };
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    assert.ok(seen.length > 10);
    assert.equal(new Set(seen).size, seen.length);
  });

  test('the audit log has no secret in it', async () => {
    const key = await tenant.addKey();
    const rotated = await tenant.as('POST', `/keys/${key.id}/rotate`, { overlap_seconds: 0 });
    const person = await tenant.addPerson('member');
    const url = `${tollgate.url}/v1/admin/audit?limit=100`;
    const log = (await httpCall(url, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).body.toString();
    assert.match(log, /key\.rotate/);
    for (const secret of [key.secret, String(rotated['secret']), person.token, tenant.owner.token, ADMIN_TOKEN]) {
      assert.ok(!log.includes(secret.slice(12)));
    }
  });

  test('nobody makes themselves or others more than they are', async () => {
    const team = await tenant.addTeam();
    const admin = await tenant.addPerson('admin');
    const teamAdmin = await tenant.addPerson('member', { id: team, role: 'admin' });
    const plain = await tenant.addMember('member');
    const attempts: readonly (readonly [Person, string, string, object])[] = [
      [admin, 'PATCH', `/v1/admin/active-org/members/${admin.userId}`, { role: 'owner' }],
      [admin, 'PATCH', `/v1/admin/active-org/members/${plain}`, { role: 'owner' }],
      [admin, 'PATCH', `/v1/admin/active-org/members/${tenant.owner.userId}`, { role: 'member' }],
      [admin, 'POST', '/v1/admin/active-org/members', { email: 'climber@people.test', role: 'owner' }],
      [teamAdmin, 'PATCH', `/v1/admin/active-org/teams/${team}/members/${teamAdmin.userId}`, { role: 'owner' }],
      [teamAdmin, 'PATCH', `/v1/admin/active-org/members/${teamAdmin.userId}`, { role: 'admin' }],
      [teamAdmin, 'POST', '/v1/admin/active-org/keys', { name: 'mine' }],
      [teamAdmin, 'PUT', `/v1/admin/active-org/teams/${team}/limits`, { limits: [] }],
      [admin, 'POST', '/v1/admin/platform-administrators', { email: 'climber@people.test' }],
    ];
    for (const [who, method, path, body] of attempts) {
      const { status } = await send(method, path, body, who.token);
      assert.equal(status, 403, `${method} ${path} ${JSON.stringify(body)}`);
    }
    const removed = await httpCall(`${tollgate.url}/v1/admin/active-org/members/${tenant.owner.userId}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${admin.token}` },
    });
    assert.ok(removed.status === 403 || removed.status === 409, String(removed.status));
  });
});

function budget(limit: string): object {
  return { limits: [{ kind: 'budget', window: 'day', limit }] };
}

function rate(limit: unknown): object {
  return { limits: [{ kind: 'requests_per_minute', limit }] };
}
