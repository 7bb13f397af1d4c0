// Spec 4.4: a parameter that a report, a listing or any other GET of the control plane does not have is refused by its
// name, on every such row of the route table.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { Authenticator } from '../../src/generation/identity/authenticate.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { RouteParts } from '../../src/routes/route-parts.ts';
import { createRoutes } from '../../src/routes/routes.ts';
import { NOBODY, OWNER } from '../support/billing-front.ts';
import { httpCall } from '../support/http-call.ts';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';
import { NOTHING_BEHIND, nameOf, routeTable } from '../support/route-table.ts';

const organizationId = randomUUID();
/** May use every route of the control plane. */
const EVERYTHING: Principal = {
  ...OWNER,
  organizationId,
  permissions: [...OWNER.permissions, 'platform.admin'],
  platformAdmin: true,
};
const PRINCIPALS: Readonly<Record<string, Principal>> = {
  everything: EVERYTHING,
  nothing: { ...NOBODY, organizationId, permissions: [] },
};
/** The storage behind the routes, of which nothing is to be asked here. */
const ABSENT = new Proxy({}, { get: () => () => assert.fail('storage was asked') });

const ROWS = routeTable().filter(({ plane, method }) => plane === 'control' && method === 'GET');
const ID = randomUUID();
const pathOf = (path: string) => path.replace(/:\w+Id/g, ID).replace(/:\w+/g, 'default');

let front: HttpFront;
before(async () => {
  const parts = {
    ...NOTHING_BEHIND,
    authenticator: new Authenticator(async (credential) => PRINCIPALS[credential] ?? null, systemClock),
    reports: ABSENT,
    identity: ABSENT,
    billing: ABSENT,
    routing: ABSENT,
    lookup: ABSENT,
    findGenerations: () => assert.fail('storage was asked'),
    catalog: () => ({ models: [], routing: { policyOf: new Map() } }),
    webhookTargets: {},
  } as unknown as RouteParts;
  front = await startHttpFront(createRoutes(parts));
});
after(() => front?.stop());

async function ask(as: string, path: string): Promise<{ status: number; error: string }> {
  const answer = await httpCall(`${front.url}${path}`, { headers: { authorization: `Bearer ${as}` } });
  return { status: answer.status, error: String((JSON.parse(answer.body.toString()) as { error: unknown }).error) };
}

const refusalOf = (name: string) => ({
  status: 400,
  error: `The field ${JSON.stringify(name)} is not valid: it is not a parameter of this endpoint.`,
});

describe('a parameter that the endpoint does not have', () => {
  for (const route of ROWS) {
    test(nameOf(route), async () => {
      const path = pathOf(route.path);
      assert.deepEqual(await ask('everything', `${path}?flavour=vanilla`), refusalOf('flavour'));
      // Also behind good ones, in other letters, and without a value.
      const [known] = Object.keys(route.description.query?.shape ?? {});
      if (known !== undefined) {
        assert.deepEqual(await ask('everything', `${path}?${known}=x&flavour=`), refusalOf('flavour'));
        assert.deepEqual(await ask('everything', `${path}?${known.toUpperCase()}=x`), refusalOf(known.toUpperCase()));
      }
    });
  }

  test('is not told of before it is known that the caller may ask', async () => {
    for (const route of ROWS.filter(({ permission }) => permission !== null)) {
      const path = `${pathOf(route.path)}?flavour=vanilla`;
      assert.equal((await ask('nothing', path)).status, 403, path);
      assert.equal((await ask('nobody', path)).status, 401, path);
    }
  });

  test('has a name that is shown cut, and escaped', async () => {
    const { error } = await ask('everything', `/v1/me?${'a'.repeat(5_000)}=1`);
    assert.ok(error.length < 250 && error.includes(`${'a'.repeat(120)}...`), error);
    assert.deepEqual(await ask('everything', '/v1/me?a%0A%22=1'), refusalOf('a\n"'));
  });
});

test('what clients of model lists send is known, and changes nothing', async () => {
  const get = async (query: string) => {
    const answer = await httpCall(`${front.url}/v1/models${query}`, {
      headers: { authorization: 'Bearer everything' },
    });
    return [answer.status, answer.body.toString()];
  };
  const plain = await get('');
  assert.equal(plain[0], 200);
  for (const query of ['?limit=1000', '?limit=20&after_id=a&beta=true', '?before_id=a', '?client_version=0.169.0'])
    assert.deepEqual(await get(query), plain, query);
});
