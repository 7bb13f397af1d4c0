// Nobody reads what is not theirs: every identity on every report and listing, with and without filters that name what
// is others', over facts of several organizations. What each may see is computed from the facts; of all else not one id
// shows.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { ROLE_PERMISSIONS } from '../../src/domain/identity/roles.ts';
import {
  DIMENSIONS,
  type Dimension,
  type FindOwnerNames,
  isDimension,
  OWNERS,
  type OwnerNames,
  SERIES_DIMENSIONS,
  type SeriesDimension,
} from '../../src/domain/reports/owners.ts';
import { insertFacts, type RequestFact } from '../../src/storage/clickhouse/facts.ts';
import type { ReportFilters, ReportScope } from '../../src/storage/clickhouse/reports/report-params.ts';
import { assertFigures } from '../support/assert-figures.ts';
import { AT_LENGTH_ONLY, howMany } from '../support/at-length.ts';
import { NOBODY, OWNER, PLATFORM } from '../support/billing-front.ts';
import { openTestClickHouse, type TestClickHouse } from '../support/clickhouse.ts';
import { GENERATED_DAYS, GENERATED_WINDOW, generateFacts } from '../support/fact-generator.ts';
import { refusalBody } from '../support/refusal-body.ts';
import { expectedDays, expectedReport, expectedSummary, latestVersions, matching } from '../support/report-oracle.ts';
import { type Json, type ReportsFront, startReportsFront } from '../support/reports-front.ts';
import { expectedSeries } from '../support/series-oracle.ts';

const NOW = Date.UTC(2026, 10, 19, 4);
/** For cost exports, which ask once a day. */
const DAY = 'start_date=2026-11-05&end_date=2026-11-05';
const DAY_FROM_MS = Date.UTC(2026, 10, 5);
const DENIED = '{"error":"permission denied"}';
const UNRESOLVED = '{"error":"authorization scope required"}';

const { facts, pools } = generateFacts(18, 2_500);
const latest = latestVersions(facts);

const distinct = (organizationId: string, read: (fact: RequestFact) => string | null) => [
  ...new Set(
    latest
      .filter((fact) => fact.organizationId === organizationId)
      .map(read)
      .filter((id) => id !== null),
  ),
];
/** With teams, people, and keys of nobody in particular; and another. */
const [ours = '', theirs = ''] = pools.organizations.filter(
  (id) =>
    distinct(id, ({ teamId }) => teamId).length > 1 &&
    latest.some((fact) => fact.organizationId === id && fact.userId === null),
);
const teams = distinct(ours, ({ teamId }) => teamId);
const users = distinct(ours, ({ userId }) => userId);
const [ownTeam = '', siblingTeam = ''] = teams;
const [ann = ''] = users;
const annsKey = latest.find((fact) => fact.organizationId === ours && fact.userId === ann)?.apiKeyId ?? '';
const nobodysKey = latest.find((fact) => fact.organizationId === ours && fact.userId === null)?.apiKeyId ?? '';
const [foreignTeam = ''] = distinct(theirs, ({ teamId }) => teamId);
const [foreignUser = ''] = distinct(theirs, ({ userId }) => userId);
const [foreignKey = ''] = distinct(theirs, ({ apiKeyId }) => apiKeyId);

const MEMBER = { permissions: ROLE_PERMISSIONS.member };
const PRINCIPALS = {
  owner: { ...OWNER, organizationId: ours },
  member: { ...OWNER, ...MEMBER, organizationId: ours, userId: ann },
  teamOwner: { ...OWNER, ...MEMBER, organizationId: ours, teamPermissions: new Map([[ownTeam, 'owner']]) },
  teamMember: { ...OWNER, ...MEMBER, organizationId: ours, teamPermissions: new Map([[ownTeam, 'member']]) },
  key: { ...NOBODY, organizationId: ours, userId: ann, teamId: ownTeam, apiKeyId: annsKey },
  nobodysKey: { ...NOBODY, organizationId: ours, apiKeyId: nobodysKey },
  foreignOwner: { ...OWNER, organizationId: theirs },
  foreignKey: { ...NOBODY, organizationId: theirs, userId: foreignUser, apiKeyId: foreignKey },
  platform: PLATFORM,
  nowhere: OWNER,
} satisfies Record<string, Principal>;
type Caller = keyof typeof PRINCIPALS;
const CALLERS = Object.keys(PRINCIPALS) as Caller[];

const TEAMS = { own: ownTeam, sibling: siblingTeam, foreign: foreignTeam, absent: randomUUID() } as const;
type TeamName = keyof typeof TEAMS;

/** What a caller may see on the routes of an audience; text: the refusal instead. Written from spec 5. */
type Sees = { readonly scope: ReportScope; readonly key?: string } | string;

function seesOwn(caller: Caller): Sees {
  const { organizationId, userId } = PRINCIPALS[caller];
  if (organizationId === null) return UNRESOLVED;
  return userId === null
    ? { scope: { organizationId }, key: PRINCIPALS[caller].apiKeyId }
    : { scope: { organizationId, userId } };
}

function seesTeam(caller: Caller, name: TeamName): Sees {
  const organizationId = PRINCIPALS[caller].organizationId;
  if (organizationId === null) return UNRESOLVED;
  const administers = caller === 'owner' || caller === 'foreignOwner';
  if (!administers && !(caller === 'teamOwner' && name === 'own')) return DENIED;
  const exists = caller === 'foreignOwner' ? name === 'foreign' : name === 'own' || name === 'sibling';
  return exists ? { scope: { organizationId, teamId: TEAMS[name] } } : 'nothing under this id';
}

function seesOrganization(caller: Caller): Sees {
  const organizationId = PRINCIPALS[caller].organizationId;
  if (organizationId === null) return UNRESOLVED;
  return caller === 'owner' || caller === 'foreignOwner' ? { scope: { organizationId } } : DENIED;
}

/** The member view: of every person of the organization, and of no key. */
function seesAsMember(caller: Caller): Sees {
  const { organizationId, credential } = PRINCIPALS[caller];
  if (organizationId === null) return UNRESOLVED;
  return credential === 'token' ? { scope: { organizationId } } : DENIED;
}

const seesPlatform = (caller: Caller): Sees => (caller === 'platform' ? { scope: { organizationId: null } } : DENIED);

interface Place {
  readonly path: string;
  readonly routing: string;
  readonly sees: (caller: Caller) => Sees;
  /** Filters that narrow this audience's scope. */
  readonly narrows: readonly (keyof typeof FOREIGN)[];
  readonly focus?: string;
  /** Who sees the requests one by one; absent: whoever sees anything. */
  readonly lists?: (caller: Caller) => Sees;
  /** What its usage is grouped by; each alone, and all together. */
  readonly groupBy: readonly Dimension[];
}

const PLACES: readonly Place[] = [
  {
    path: '/v1/usage/me',
    routing: '/v1/usage/me/analytics/routing',
    sees: seesOwn,
    narrows: ['api_key_id'],
    groupBy: DIMENSIONS,
  },
  ...(Object.keys(TEAMS) as TeamName[]).map(
    (name): Place => ({
      path: `/v1/usage/teams/${TEAMS[name]}`,
      routing: `/v1/usage/teams/${TEAMS[name]}/analytics/routing`,
      sees: (caller) => seesTeam(caller, name),
      narrows: ['api_key_id', 'user_id'],
      groupBy: DIMENSIONS,
    }),
  ),
  {
    path: '/v1/usage/active-org',
    routing: '/v1/usage/active-org/analytics/routing',
    sees: seesAsMember,
    lists: seesOrganization,
    narrows: ['api_key_id', 'user_id', 'team_id'],
    groupBy: ['model', 'organization', 'team'],
  },
  {
    path: '/v1/admin/active-org/usage',
    routing: '/v1/admin/active-org/usage/analytics/routing',
    sees: seesOrganization,
    narrows: ['api_key_id', 'user_id', 'team_id'],
    groupBy: DIMENSIONS,
    focus: '/v1/admin/active-org/usage/export/focus',
  },
  {
    path: '/v1/admin/usage',
    routing: '/v1/admin/analytics/routing',
    sees: seesPlatform,
    narrows: ['api_key_id', 'user_id', 'team_id', 'organization_id'],
    groupBy: DIMENSIONS,
    focus: '/v1/admin/usage/export/focus',
  },
];

/** Of the other organization; for its own people these are their own. */
const FOREIGN = {
  api_key_id: foreignKey,
  user_id: foreignUser,
  team_id: foreignTeam,
  organization_id: theirs,
} as const;
const FIELDS = {
  api_key_id: 'apiKeyId',
  user_id: 'userId',
  team_id: 'teamId',
  organization_id: 'organizationId',
} as const;

let clickhouse: TestClickHouse;
let front: ReportsFront;
before(async () => {
  clickhouse = await openTestClickHouse();
  await insertFacts(clickhouse.client, facts, 'all');
  const homes = [ours, theirs].flatMap((organizationId) =>
    distinct(organizationId, ({ teamId }) => teamId).map((id) => [id, organizationId] as const),
  );
  front = await startReportsFront({
    principals: PRINCIPALS,
    teams: new Map(homes),
    clickhouse: () => clickhouse.client,
    clock: { nowMs: () => NOW, monotonicMs: () => 0 },
    ownerNames: findNames,
  });
});
after(async () => {
  await front?.stop();
  await clickhouse?.close();
});

/** The facts that a caller may see there, narrowed; those of refused requests too, which only listings show. */
function visible({ scope, key }: Exclude<Sees, string>, filters: ReportFilters = {}): RequestFact[] {
  return matching(latest, { scope, filters, window: GENERATED_WINDOW, showsRefused: true }).filter(
    ({ apiKeyId }) => key === undefined || apiKeyId === key,
  );
}

/** Everything that has an id is called after it: a name that shows is one of the scope that was asked for. */
const nameOf = (id: unknown) => (typeof id === 'string' ? `name of ${id}` : null);

const findNames: FindOwnerNames = async (_, ids) =>
  Object.fromEntries(
    OWNERS.map((owner) => [owner, new Map(ids[owner].map((id) => [id, `name of ${id}`]))]),
  ) as unknown as OwnerNames;

/** With the name beside each id of an owner. */
function named(row: object): Json {
  return Object.fromEntries(
    Object.entries(row).flatMap(([member, value]) => {
      const owner = OWNERS.find((name) => member === `${name}_id`);
      return owner === undefined
        ? [[member, value]]
        : [
            [member, value],
            [owner, nameOf(value)],
          ];
    }),
  );
}

/** The name of everything in a text. */
function namesIn(text: string): string[] {
  return [...new Set(text.match(/name of [0-9a-f-]{36}/g) ?? [])].toSorted(byText);
}

function namesOf(seen: readonly RequestFact[], read: (fact: RequestFact) => readonly (string | null)[]): string[] {
  return [...new Set(seen.flatMap(read).filter((id) => id !== null))].map((id) => `name of ${id}`).toSorted(byText);
}

/** The ids of the scope that a caller has somewhere, as a summary names it. */
function whose({ scope, key }: Exclude<Sees, string>): Json {
  return named({
    organization_id: scope.organizationId,
    team_id: scope.teamId ?? null,
    user_id: scope.userId ?? null,
    api_key_id: key ?? null,
  });
}

/** What is grouped by one dimension; all together, and series by key, are asked for as CSV in any case. */
const AS_CSV_TOO = howMany({ short: false, long: true });

async function assertGroups(caller: Caller, place: Place, seen: RequestFact[], query: string) {
  const { path, groupBy } = place;
  const counted = seen.filter(({ outcome }) => outcome !== 'refused');
  for (const dimensions of [...groupBy.map((dimension) => [dimension]), groupBy]) {
    const where = `${caller} at ${path} by ${dimensions.join()}`;
    const get = async (at: string, format = 'json') =>
      (
        await front.get(caller, `${at}?${GENERATED_DAYS}&${query}&group_by=${dimensions.join()}&format=${format}`)
      ).body.toString();
    const question = { scope: { organizationId: null }, filters: {}, window: GENERATED_WINDOW, groupBy: dimensions };
    const { groups } = (JSON.parse(await get(path)) as { data: Json }).data;
    assert.deepEqual(groups, (expectedSummary(counted, question).groups ?? []).map(named), where);
    const { data: days } = JSON.parse(await get(`${path}/daily`)) as Json;
    assert.deepEqual(days, expectedDays(counted, question).map(named), where);
    if (dimensions !== groupBy && !AS_CSV_TOO) continue;
    const names = namesOf(counted, (fact) => dimensions.map((dimension) => OWNER_IDS[dimension](fact)));
    assert.deepEqual(namesIn(await get(path, 'csv')), names, where);
    assert.deepEqual(namesIn(await get(`${path}/daily`, 'csv')), names, where);
  }
  for (const dimension of DIMENSIONS.filter((other) => !groupBy.includes(other))) {
    for (const at of [path, seriesOf(place)]) {
      const answer = await front.get(caller, `${at}?group_by=${dimension}`);
      assert.equal(answer.status, 400, `${at} by ${dimension}`);
    }
  }
  for (const dimension of SERIES_DIMENSIONS) {
    const isShown = isDimension(dimension) ? groupBy.includes(dimension) : dimension !== 'tag' || groupBy.length > 3;
    if (isShown) await assertSeries(caller, place, counted, dimension, query);
    else assert.equal((await front.get(caller, `${seriesOf(place)}?group_by=${dimension}`)).status, 400, dimension);
  }
}

/** The series of each group, and the names of what is the caller's and of nothing else. */
async function assertSeries(
  caller: Caller,
  place: Place,
  counted: RequestFact[],
  dimension: SeriesDimension,
  query: string,
): Promise<void> {
  const where = `${caller} at ${seriesOf(place)} by ${dimension}`;
  const ask = async (format: string) =>
    (
      await front.get(
        caller,
        `${seriesOf(place)}?${GENERATED_DAYS}&${query}&group_by=${dimension}&top=25&format=${format}`,
      )
    ).body.toString();
  const question = { scope: { organizationId: null }, filters: {}, window: GENERATED_WINDOW };
  const expected = expectedSeries(counted, { ...question, groupBy: dimension, top: 25 });
  const { data } = JSON.parse(await ask('json')) as { data: Json };
  assertFigures(data['groups'], expected.groups.map(named), where);
  if (dimension !== 'api_key' && !AS_CSV_TOO) return;
  const shown = isDimension(dimension) ? expected.groups.map((group) => group[OWNER_MEMBERS[dimension]]) : [];
  const names = [...new Set(shown.filter((id) => typeof id === 'string').map((id) => `name of ${id}`))];
  assert.deepEqual(namesIn(await ask('csv')), dimension === 'model' ? [] : names.toSorted(byText), where);
}

const OWNER_MEMBERS = {
  model: 'model',
  organization: 'organization_id',
  team: 'team_id',
  user: 'user_id',
  api_key: 'api_key_id',
} as const satisfies Record<Dimension, string>;

const OWNER_IDS: Readonly<Record<Dimension, (fact: RequestFact) => string | null>> = {
  model: () => null,
  organization: ({ organizationId }) => organizationId,
  team: ({ teamId }) => teamId,
  user: ({ userId }) => userId,
  api_key: ({ apiKeyId }) => apiKeyId,
};
const everyOwner = (fact: RequestFact) => DIMENSIONS.map((dimension) => OWNER_IDS[dimension](fact));

/** The series stands beside the routing report. */
function seriesOf({ routing }: Place): string {
  return routing.replace('/routing', '/series');
}

/** In the member view a filter for one person or key is answered of the member's own use, and says so. */
function isOwnAlone(caller: Caller, { path }: Place, query: string): boolean {
  const namesOne = query.startsWith('user_id=') || query.startsWith('api_key_id=');
  return path === '/v1/usage/active-org' && namesOne && !PRINCIPALS[caller].permissions.includes('org.admin');
}

async function assertSees(caller: Caller, place: Place, seen: RequestFact[], query: string): Promise<void> {
  const { path, routing, focus, sees } = place;
  const where = `${caller} at ${path}?${query}`;
  const question = { scope: { organizationId: null }, filters: {}, window: GENERATED_WINDOW };
  const get = async (at: string) => front.json(caller, `${at}?${GENERATED_DAYS}&${query}`);

  const summary = {
    ...whose((isOwnAlone(caller, place, query) ? seesOwn(caller) : sees(caller)) as Exclude<Sees, string>),
    ...expectedSummary(seen, question),
    start_date: '2026-09-24',
    end_date: '2026-11-19',
    time_zone: 'UTC',
  };
  assert.deepEqual((await get(path))['data'], summary, where);
  assert.deepEqual((await get(`${path}/daily`))['data'], expectedDays(seen, question), where);
  const { totals, by_model } = (await get(routing)) as { totals: Json; by_model: Json[] };
  const report = expectedReport(seen, { ...question, recentCorrections: false });
  assert.deepEqual(
    [totals['all_requests'], totals['requests'], totals['spend_usd']],
    [report.totals.all_requests, report.totals.requests, report.totals.spend_usd],
    where,
  );
  assert.deepEqual(
    by_model.map(({ model, requests }) => [model, requests]),
    report.by_model.map(({ model, requests }) => [model, requests]),
    where,
  );

  const usage = { ...question, groupBy: 'model', top: 3 } as const;
  const series = await front.json(caller, `${seriesOf(place)}?${GENERATED_DAYS}&group_by=model&top=3&${query}`);
  const { buckets, totals: all, groups, remainder } = series['data'] as Json;
  assertFigures({ buckets, totals: all, groups, remainder }, expectedSeries(seen, usage), where);

  const listing = place.lists?.(caller) ?? sees(caller);
  if (typeof listing === 'string') {
    const refused = await front.get(caller, `${path}/requests?${GENERATED_DAYS}&${query}`);
    assert.deepEqual([refused.status, JSON.stringify(refusalBody(refused.body.toString()))], [403, listing], where);
    return;
  }
  const listed = await front.get(caller, `${path}/requests?${GENERATED_DAYS}&format=csv&${query}`);
  const [, ...lines] = listed.body.toString().trimEnd().split('\r\n');
  const ids = lines.filter((line) => /^[0-9a-f-]{36},/.test(line)).map((line) => line.slice(0, 36));
  assert.deepEqual(ids.toSorted(byText), seen.map(({ id }) => id).toSorted(byText), where);
  assert.deepEqual(namesIn(listed.body.toString()), namesOf(seen, everyOwner), where);
  const page = (await front.json(caller, `${path}/requests?${GENERATED_DAYS}&limit=100&${query}`))['data'] as Json[];
  assert.equal(page.length, Math.min(100, seen.length), where);
  assert.ok(
    page.every(({ id }) => ids.includes(String(id))),
    where,
  );
  for (const entry of page)
    for (const owner of OWNERS) assert.equal(entry[owner], nameOf(entry[`${owner}_id`]), `${where}: ${owner}`);

  const [own] = page;
  if (own !== undefined) {
    const { data } = await front.json(caller, `${path}/requests/${String(own['id'])}`);
    assert.deepEqual(data, { ...own, details: null }, where);
  }
  const shown = new Set(visible(sees(caller) as Exclude<Sees, string>));
  const hidden = latest.find((fact) => !shown.has(fact));
  if (hidden !== undefined)
    assert.equal((await front.get(caller, `${path}/requests/${hidden.id}`)).status, 404, `${where}: ${hidden.id}`);

  if (focus === undefined) return;
  const costs = (await front.get(caller, `${focus}?${DAY}&${query}`)).body.toString();
  const organizations = new Set(
    seen
      .filter(({ admittedAtMs }) => admittedAtMs >= DAY_FROM_MS && admittedAtMs < DAY_FROM_MS + 86_400_000)
      .map(({ organizationId }) => organizationId),
  );
  for (const id of pools.organizations)
    assert.equal(costs.includes(id), organizations.has(id), `${where}: costs of ${id}`);
  const namedOrganizations = namesIn(costs).filter((name) => pools.organizations.some((id) => name === nameOf(id)));
  assert.deepEqual(namedOrganizations, [...organizations].map((id) => `name of ${id}`).toSorted(byText), where);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

async function assertRefused(caller: Caller, place: Place, words: string): Promise<void> {
  const { path, routing, focus } = place;
  for (const at of [
    path,
    seriesOf(place),
    `${path}/daily`,
    `${path}/requests`,
    `${path}/requests?format=csv`,
    `${path}/requests/${latest[0]?.id}`,
    routing,
    ...(focus === undefined ? [] : [focus]),
  ]) {
    const answer = await front.get(caller, at);
    const body = JSON.stringify(refusalBody(answer.body.toString()));
    const status = words === DENIED ? 403 : words === UNRESOLVED ? 400 : 404;
    assert.equal(answer.status, status, `${caller} at ${at}: ${body}`);
    assert.ok(body.includes(words), `${caller} at ${at}: ${body}`);
  }
}

describe('the facts of this test', () => {
  test('are of several organizations, teams, people and keys', () => {
    assert.ok(
      teams.length >= 2 &&
        users.length >= 1 &&
        annsKey !== '' &&
        nobodysKey !== '' &&
        foreignTeam !== '' &&
        foreignUser !== '',
    );
    for (const caller of ['member', 'nobodysKey', 'foreignKey', 'owner'] as const)
      assert.ok(visible(seesOwn(caller === 'owner' ? 'member' : caller) as Exclude<Sees, string>).length > 5, caller);
  });
});

/** Of those who see anything at a place, so many ask with each grouping and with each filter. */
const CALLERS_ASKING = howMany({ short: 1, long: CALLERS.length });
/** Where groupings and filters are asked for in any run: by a member, and by an administrator. */
const ASKED_FURTHER = ['/v1/usage/me', '/v1/admin/active-org/usage'];

describe('every identity on every report', () => {
  for (const place of PLACES) {
    const name = (Object.keys(TEAMS) as TeamName[]).find((team) => place.path === `/v1/usage/teams/${TEAMS[team]}`);
    test(name === undefined ? place.path : `/v1/usage/teams/{${name}}`, async () => {
      for (const caller of CALLERS) {
        const sees = place.sees(caller);
        if (typeof sees === 'string') await assertRefused(caller, place, sees);
        else await assertSees(caller, place, visible(sees), '');
      }
    });

    // Of most at length: who sees anything is asked above, and the condition is the same one.
    const options = ASKED_FURTHER.includes(place.path) ? {} : AT_LENGTH_ONLY;
    test(`${name === undefined ? place.path : `/v1/usage/teams/{${name}}`}, grouped`, options, async () => {
      const seeing = CALLERS.filter((caller) => typeof place.sees(caller) !== 'string');
      for (const caller of seeing.slice(0, CALLERS_ASKING)) {
        const sees = place.sees(caller);
        if (typeof sees !== 'string') await assertGroups(caller, place, visible(sees), '');
      }
    });
  }
});

describe('a filter that names what is another’s', () => {
  for (const place of PLACES.filter(({ path }) => !path.includes('/teams/') || path.endsWith(ownTeam))) {
    const options = ASKED_FURTHER.includes(place.path) ? {} : AT_LENGTH_ONLY;
    test(`narrows to nothing, or is refused: ${place.path.replace(ownTeam, '{teamId}')}`, options, async () => {
      const seeing = CALLERS.filter((caller) => typeof place.sees(caller) !== 'string');
      for (const caller of seeing.slice(0, CALLERS_ASKING)) {
        const sees = place.sees(caller);
        if (typeof sees === 'string') continue;
        for (const [parameter, value] of Object.entries(FOREIGN) as [keyof typeof FOREIGN, string][]) {
          if (place.narrows.includes(parameter)) {
            const seen = visible(sees, { [FIELDS[parameter]]: value });
            await assertSees(caller, place, seen, `${parameter}=${value}`);
            if (sees.scope.organizationId === ours) assert.deepEqual(seen, []);
          } else {
            const answer = await front.get(caller, `${place.path}?${parameter}=${value}`);
            assert.deepEqual(
              [answer.status, answer.body.toString().includes(`\\"${parameter}\\" is not valid`)],
              [400, true],
            );
          }
        }
      }
    });
  }

  test('is a colleague’s, or their key’s: members see nothing of it in their view, and administrators do', async () => {
    const colleague = users.find((id) => id !== ann) ?? '';
    const path = `/v1/usage/active-org?${GENERATED_DAYS}`;
    const requestsOf = async (caller: Caller, filter: string) =>
      ((await front.json(caller, `${path}&${filter}`))['data'] as Json)['requests'];
    for (const filter of [`user_id=${colleague}`, `user%5Fid=${colleague}`, `api_key_id=${nobodysKey}`]) {
      assert.equal(await requestsOf('member', filter), 0, filter);
      assert.ok(Number(await requestsOf('owner', filter)) > 0, filter);
    }
    // An own provider key may be for one person; a tag is a project's, and every member's.
    const { credentialId } = latest.find((fact) => fact.organizationId === ours && fact.credentialId !== null) ?? {};
    const byKey = `credential_id=${credentialId}`;
    const mine = (await front.json('member', `/v1/usage/me?${GENERATED_DAYS}&${byKey}`))['data'] as Json;
    assert.equal(await requestsOf('member', byKey), mine['requests']);
    assert.ok(Number(await requestsOf('owner', byKey)) > Number(mine['requests']));
    assert.equal(await requestsOf('member', 'tag=ci'), await requestsOf('owner', 'tag=ci'));
    const routing = await front.json('member', `${path.replace('?', '/analytics/routing?')}&user_id=${colleague}`);
    assert.equal((routing['totals'] as Json)['all_requests'], 0);
    const own = ((await front.json('member', `/v1/usage/me?${GENERATED_DAYS}`))['data'] as Json)['requests'];
    assert.equal(await requestsOf('member', `user_id=${ann}`), own);
    assert.ok(Number(await requestsOf('member', `api_key_id=${annsKey}`)) > 0);
  });

  test('is the same as one that names nothing', async () => {
    for (const [parameter, value] of [
      ['api_key_id', foreignKey],
      ['user_id', foreignUser],
      ['team_id', foreignTeam],
    ] as const) {
      const ask = async (id: string) =>
        (
          await front.get('owner', `/v1/admin/active-org/usage/requests?${GENERATED_DAYS}&${parameter}=${id}`)
        ).body.toString();
      assert.equal(await ask(value), await ask(randomUUID()));
    }
  });
});

describe('a cursor', () => {
  test('of another scope is refused, and one’s own shows nothing of others', async () => {
    const cursorAt = async (caller: Caller, path: string) =>
      String((await front.json(caller, `${path}?${GENERATED_DAYS}&limit=1`))['next_cursor']);
    const cursors = [
      await cursorAt('platform', '/v1/admin/usage/requests'),
      await cursorAt('foreignOwner', '/v1/admin/active-org/usage/requests'),
      await cursorAt('owner', '/v1/admin/active-org/usage/requests'),
    ];
    for (const cursor of cursors) {
      const answer = await front.get('key', `/v1/usage/me/requests?${GENERATED_DAYS}&cursor=${cursor}`);
      assert.equal(answer.status, 400, answer.body.toString());
    }
    const own = await front.json(
      'owner',
      `/v1/usage/active-org/requests?${GENERATED_DAYS}&limit=100&cursor=${cursors[2]}`,
    );
    const mine = new Set(latest.filter(({ organizationId }) => organizationId === ours).map(({ id }) => id));
    assert.ok((own['data'] as Json[]).length > 0 && (own['data'] as Json[]).every(({ id }) => mine.has(String(id))));
  });
});
