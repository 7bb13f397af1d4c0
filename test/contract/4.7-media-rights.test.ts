// Spec 4.7 and 5: who may do what to an uploaded file that exists, by route and by whoever asks. What is not one's own
// is as absent as what nobody has; a key that is revoked, and a public address while its organization is frozen, too.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, Tenant } from '../support/identity-world.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const BOUNDARY = 'a-boundary-of-rights';
const BYTES = randomBytes(1_000);

/** Whoever asks: what the file is to them. */
const CALLERS = [
  'key',
  'otherKey',
  'member',
  'teamAdmin',
  'admin',
  'owner',
  'platform',
  'foreignKey',
  'foreignOwner',
  'narrowKey',
  'revokedKey',
  'nobody',
] as const;
type Caller = (typeof CALLERS)[number];

interface RouteCase {
  readonly method: string;
  /** ID stands for the file, ORGANIZATION for whose it is. */
  readonly path: string;
  readonly statuses: Readonly<Record<Caller, number>>;
}

const OF_CLIENTS: RouteCase['statuses'] = {
  key: 200,
  otherKey: 200,
  member: 200,
  teamAdmin: 200,
  admin: 200,
  owner: 200,
  // It has no organization: its own routes name one.
  platform: 400,
  foreignKey: 404,
  foreignOwner: 404,
  narrowKey: 200,
  revokedKey: 401,
  nobody: 401,
};
const OF_ADMINISTRATORS: RouteCase['statuses'] = {
  ...OF_CLIENTS,
  key: 403,
  otherKey: 403,
  member: 403,
  teamAdmin: 403,
  narrowKey: 403,
};
/** Theirs, without this file. */
const LISTS: RouteCase['statuses'] = { ...OF_ADMINISTRATORS, foreignKey: 403, foreignOwner: 200 };
const OF_PLATFORM: RouteCase['statuses'] = {
  ...OF_ADMINISTRATORS,
  admin: 403,
  owner: 403,
  foreignKey: 403,
  foreignOwner: 403,
  platform: 200,
};

const ROUTES: readonly RouteCase[] = [
  ...['/v1/media/ID', '/v1/media/ID/metadata', '/v1/files/ID', '/v1/files/ID/metadata'].flatMap((path) => [
    { method: 'GET', path, statuses: OF_CLIENTS },
    ...(path.endsWith('metadata') ? [] : [{ method: 'HEAD', path, statuses: OF_CLIENTS }]),
  ]),
  ...['/v1/media/upload', '/v1/files'].map((path) => ({
    method: 'POST',
    path,
    statuses: { ...OF_CLIENTS, foreignKey: 200, foreignOwner: 200 },
  })),
  { method: 'GET', path: '/v1/admin/active-org/media', statuses: LISTS },
  { method: 'GET', path: '/v1/admin/active-org/media/usage', statuses: LISTS },
  {
    method: 'DELETE',
    path: '/v1/admin/active-org/media/ID',
    statuses: { ...OF_ADMINISTRATORS, foreignKey: 403, foreignOwner: 404 },
  },
  { method: 'GET', path: '/v1/admin/organizations/ORGANIZATION/media', statuses: OF_PLATFORM },
  { method: 'GET', path: '/v1/admin/organizations/ORGANIZATION/media/usage', statuses: OF_PLATFORM },
  { method: 'DELETE', path: '/v1/admin/organizations/ORGANIZATION/media/ID', statuses: OF_PLATFORM },
];

describe('rights on uploaded files', () => {
  let front: Front;
  let tenant: Tenant;
  let other: Tenant;
  let credentials: Readonly<Record<Caller, string | null>>;

  before(async () => {
    front = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: 'http://127.0.0.1:9' }),
      env: { ADMIN_TOKEN, MEDIA: 'disk', MEDIA_PUBLIC_URL: 'https://files.test' },
    });
    tenant = await Tenant.create(front.url, 'own', 'prepaid');
    other = await Tenant.create(front.url, 'other-one', 'prepaid');
    const revoked = await tenant.addKey();
    await tenant.as('DELETE', `/keys/${revoked.id}`);
    const teamId = await tenant.addTeam();
    credentials = {
      key: (await tenant.addKey()).secret,
      otherKey: (await tenant.addKey({ team_id: teamId })).secret,
      member: (await tenant.addPerson('member')).token,
      teamAdmin: (await tenant.addPerson('member', { id: teamId, role: 'admin' })).token,
      admin: (await tenant.addPerson('admin')).token,
      owner: tenant.owner.token,
      platform: ADMIN_TOKEN,
      foreignKey: (await other.addKey()).secret,
      foreignOwner: other.owner.token,
      narrowKey: (await tenant.addKey({ allowed_models: ['sim/small'] })).secret,
      revokedKey: revoked.secret,
      nobody: null,
    };
  });
  after(() => front?.stop());

  function call(caller: Caller, method: string, path: string): Promise<HttpAnswer> {
    const credential = credentials[caller];
    const headers = credential === null ? {} : { authorization: `Bearer ${credential}` };
    if (method !== 'POST') return httpCall(`${front.url}${path}`, { method, headers });
    return httpCall(`${front.url}${path}`, {
      method,
      headers: { ...headers, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: writeForm(BOUNDARY, [{ name: 'file', filename: 'a', value: BYTES }]),
    });
  }

  async function uploaded(caller: Caller = 'key'): Promise<{ readonly id: string; readonly url: string }> {
    const answer = await call(caller, 'POST', '/v1/media/upload');
    assert.equal(answer.status, 200, answer.body.toString());
    return JSON.parse(answer.body.toString());
  }

  for (const { method, path, statuses } of ROUTES)
    test(`${method} ${path}`, async () => {
      for (const caller of CALLERS) {
        // A deletion by the one before has taken it away.
        const { id } = await uploaded();
        const target = (fileId: string) => path.replace('ID', fileId).replace('ORGANIZATION', tenant.id);
        const answer = await call(caller, method, target(id));
        assert.equal(answer.status, statuses[caller], `${caller}: ${answer.body.toString()}`);
        if (answer.status >= 400) await assertTellsNothing(caller, { method, path: target(randomUUID()) }, answer);
        if (path.endsWith('/media') && answer.status === 200) {
          const isOwn = answer.body.includes(id);
          assert.equal(isOwn, !caller.startsWith('foreign'), caller);
        }
        if (method === 'DELETE')
          assert.equal((await call('key', 'GET', `/v1/media/${id}`)).status, answer.status === 200 ? 404 : 200, caller);
      }
    });

  /** Refused, it is answered as for a file that nobody has. */
  async function assertTellsNothing(
    caller: Caller,
    { method, path }: { readonly method: string; readonly path: string },
    answer: HttpAnswer,
  ): Promise<void> {
    const absent = await call(caller, method, path);
    assert.equal(absent.status, answer.status, caller);
    const names = ({ headers }: HttpAnswer): string[] => Object.keys(headers).sort();
    assert.deepEqual(names(absent), names(answer), caller);
    if (method !== 'HEAD')
      assert.deepEqual(refusalBody(absent.body.toString()), refusalBody(answer.body.toString()), caller);
  }

  test('whoever has a public address reads the file, and nothing beside it', async () => {
    const { url, id } = await uploaded();
    const path = new URL(url).pathname;
    for (const caller of CALLERS) assert.equal((await call(caller, 'GET', path)).status, 200, caller);
    const foreign = await uploaded('foreignKey');
    for (const wrong of [
      path.replace(id, foreign.id),
      path.replace(id, randomUUID()),
      `${path}A`,
      path.slice(0, -1),
      path.replace(id, id.toUpperCase()),
    ])
      assert.equal((await call('nobody', 'GET', wrong)).status, 404, wrong);
  });

  test('while an organization is frozen its public addresses are as absent as any; its own keys read on', async () => {
    const { url, id } = await uploaded('foreignKey');
    const path = new URL(url).pathname;
    const set = (frozen: boolean) =>
      ask(front.url, ADMIN_TOKEN, 'PATCH', `/v1/admin/organizations/${other.id}`, { frozen });
    // One address in a few hundred ends so by chance.
    const elsewhere = `${path.slice(0, -2)}${path.endsWith('AA') ? 'QA' : 'AA'}`;
    const absent = refusalBody((await call('nobody', 'GET', elsewhere)).body.toString());
    await set(true);
    for (const method of ['GET', 'HEAD']) {
      const answer = await call('nobody', method, path);
      assert.equal(answer.status, 404);
      if (method === 'GET') assert.deepEqual(refusalBody(answer.body.toString()), absent);
    }
    assert.ok((await call('foreignKey', 'GET', `/v1/media/${id}`)).body.equals(BYTES));
    // Another organization's stay.
    const own = await uploaded();
    assert.equal((await call('nobody', 'GET', new URL(own.url).pathname)).status, 200);
    await set(false);
    assert.ok((await call('nobody', 'GET', path)).body.equals(BYTES));
  });
});
