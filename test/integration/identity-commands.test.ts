// Identity by command: the operator's way from an empty database to people, tokens and keys, and what the audit log
// says of it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { accessCommand } from '../../src/commands/access.ts';
import { administratorCommand } from '../../src/commands/administrator.ts';
import { auditCommand } from '../../src/commands/audit.ts';
import type { Command } from '../../src/commands/command/command.ts';
import { keyCommand } from '../../src/commands/key.ts';
import { limitCommand } from '../../src/commands/limit.ts';
import { memberCommand } from '../../src/commands/member.ts';
import { orgCommand } from '../../src/commands/org.ts';
import { teamCommand } from '../../src/commands/team.ts';
import { tokenCommand } from '../../src/commands/token.ts';
import { derivePepper, hashCredential } from '../../src/domain/identity/key-hash.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/catalog/credentials.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { openTestDatabase, type TestDatabase } from '../support/postgres.ts';

const masterKey = randomBytes(32);
let database: TestDatabase;
let postgres: Postgres;
let url: string;
before(async () => {
  database = await openTestDatabase();
  ({ url, postgres } = database);
});
after(() => database?.close());

/** The lines a command printed. */
async function run(command: Command, line: string): Promise<readonly string[]> {
  const printed: string[] = [];
  const environment = { DATABASE_URL: url, MASTER_KEY: masterKey.toString('base64'), USER: 'operator' };
  assert.equal(await command.run(line.split(' '), { environment, print: (text) => void printed.push(text) }), 0);
  return printed;
}

const principalOf = (secret = ''): Promise<Principal | null> =>
  findPrincipalByCredentialHash(postgres, hashCredential(derivePepper(masterKey), secret));

test('from an empty database to people, tokens and keys', async () => {
  const [organizationId = ''] = await run(orgCommand, 'create --slug acme --owner ann@acme.test');
  assert.deepEqual(await run(orgCommand, 'list'), [`acme\tprepaid\topen\tacme\t${organizationId}`]);
  await assert.rejects(run(orgCommand, 'create --slug acme'), /organization "acme": slug is taken/);

  await run(memberCommand, 'add --organization acme --user bo@acme.test');
  await run(memberCommand, 'add --organization acme --user bo@acme.test --role admin');
  assert.deepEqual(await run(memberCommand, 'list --organization acme'), [
    'ann@acme.test\towner',
    'bo@acme.test\tadmin',
  ]);
  await assert.rejects(run(memberCommand, 'remove --organization acme --user ann@acme.test'), /the last owner stays/);
  await assert.rejects(run(memberCommand, 'list --organization other'), /there is no organization "other"/);

  await run(administratorCommand, 'add --user root@platform.test');
  assert.deepEqual(await run(administratorCommand, 'list'), ['root@platform.test']);
  const [tokenId, token] = (
    (await run(tokenCommand, 'create --user root@platform.test --name laptop --organization acme'))[0] ?? ''
  ).split('\t');
  assert.equal((await principalOf(token))?.platformAdmin, true);
  await run(tokenCommand, `revoke --id ${tokenId}`);
  assert.equal(await principalOf(token), null);

  const [first] = await run(
    keyCommand,
    'create --organization acme --name ci --user bo@acme.test --expires 2999-01-31',
  );
  const [second] = await run(keyCommand, 'rotate --organization acme --name ci --overlap 3600');
  assert.equal((await principalOf(first))?.apiKeyId, (await principalOf(second))?.apiKeyId);
  const past = /expires_at must be in the future; revoking a key ends it now/;
  await assert.rejects(run(keyCommand, 'update --organization acme --name ci --expires 2020-01-31'), past);
  await assert.rejects(run(keyCommand, 'create --organization acme --name late --expires 2020-01-31'), past);
  await run(keyCommand, 'revoke --organization acme --name ci');
  assert.deepEqual([await principalOf(first), await principalOf(second)], [null, null]);
  await assert.rejects(run(keyCommand, 'revoke --organization acme --name ci'), /there is no key "ci" of "acme"/);

  const log = (await run(auditCommand, '--organization acme')).map(
    (line) => JSON.parse(line) as { action: string; actor: { label: string } },
  );
  assert.deepEqual(
    log.map(({ action }) => action),
    ['key.revoke', 'key.rotate', 'key.create', 'member.role', 'member.add', 'member.add', 'organization.create'],
  );
  assert.ok(log.every(({ actor }) => actor.label === 'command line: operator'));
  assert.equal((await run(auditCommand, '--limit 2')).length, 2);
});

async function actionsOf(slug: string): Promise<readonly string[]> {
  const log = (await run(auditCommand, `--organization ${slug}`)).map((line) => JSON.parse(line) as { action: string });
  return log.map(({ action }) => action).toReversed();
}

test('teams: made, renamed, their members, deleted; each a line in the audit log', async () => {
  await run(orgCommand, 'create --slug teams --owner ann@teams.test');
  await run(memberCommand, 'add --organization teams --user bo@teams.test');
  const [id = ''] = await run(teamCommand, 'create --organization teams --slug lab --name Lab');
  assert.match(id, /^[0-9a-f-]{36}$/);
  await assert.rejects(
    run(teamCommand, 'create --organization teams --slug lab'),
    /team "lab" of "teams": slug is taken/,
  );
  await assert.rejects(
    run(teamCommand, 'create --organization teams --slug Lab!'),
    /team "Lab!" of "teams": slug must be 1 to 63 lower-case/,
  );
  assert.deepEqual(await run(teamCommand, 'rename --organization teams --team lab --slug research --name Research'), [
    'research\tResearch',
  ]);
  await assert.rejects(run(teamCommand, 'rename --organization teams --team research'), {
    name: 'UsageFault',
    message: /nothing to change/,
  });
  await assert.rejects(
    run(teamCommand, 'rename --organization teams --team lab --slug x'),
    /there is no team "lab" of "teams"/,
  );
  assert.deepEqual(await run(teamCommand, 'list --organization teams'), ['research\tResearch']);

  const seat = '--organization teams --team research --user bo@teams.test';
  assert.deepEqual(await run(teamCommand, `member add ${seat}`), ['bo@teams.test is member']);
  assert.deepEqual(await run(teamCommand, `member role ${seat} --role admin`), ['bo@teams.test is admin']);
  assert.deepEqual(await run(teamCommand, 'member list --organization teams --team research'), [
    'bo@teams.test\tadmin',
  ]);
  await assert.rejects(run(teamCommand, `member role ${seat}`), { name: 'UsageFault', message: '--role is missing' });
  await assert.rejects(run(teamCommand, `member role ${seat} --role boss`), {
    name: 'UsageFault',
    message: /--role: must be one of owner, admin, member/,
  });
  await assert.rejects(run(teamCommand, 'member add --organization teams --user bo@teams.test'), {
    name: 'UsageFault',
    message: '--team is missing',
  });
  await assert.rejects(
    run(teamCommand, `member add ${seat.replace('bo@', 'zoe@')}`),
    /there is no member "zoe@teams.test" of the organization/,
  );
  await assert.rejects(
    run(memberCommand, 'role --organization teams --user zoe@teams.test --role admin'),
    /there is no member "zoe@teams.test"/,
  );
  assert.deepEqual(await run(teamCommand, `member remove ${seat}`), ['bo@teams.test is removed; keys revoked: 0']);

  await run(keyCommand, 'create --organization teams --name ci --team research');
  await assert.rejects(
    run(teamCommand, 'delete --organization teams --team research'),
    /team "research" of "teams": team has keys that are not revoked/,
  );
  await run(keyCommand, 'revoke --organization teams --name ci');
  await run(teamCommand, 'delete --organization teams --team research');
  assert.deepEqual(await run(teamCommand, 'list --organization teams'), []);
  for (const line of [
    '',
    'paint --organization teams',
    'list',
    'list now --organization teams',
    'list --organization teams --colour red',
  ]) {
    await assert.rejects(run(teamCommand, line), { name: 'UsageFault' }, line);
  }
  assert.deepEqual((await actionsOf('teams')).slice(3), [
    'team.create',
    'team.update',
    'member.add',
    'member.role',
    'member.remove',
    'key.create',
    'key.revoke',
    'team.delete',
  ]);
});

test('limits: of an organization, team, member and key; set one by one, removed, listed', async () => {
  await run(orgCommand, 'create --slug limits --owner ann@limits.test');
  await run(teamCommand, 'create --organization limits --slug lab');
  await run(keyCommand, 'create --organization limits --name ci');
  for (const scope of ['', ' --team lab', ' --user ann@limits.test', ' --key ci']) {
    const whose = `--organization limits${scope}`;
    assert.deepEqual(await run(limitCommand, `list ${whose}`), ['no limits']);
    await run(limitCommand, `set ${whose} --kind requests_per_minute --limit 60`);
    await run(limitCommand, `set ${whose} --kind budget --window month --limit 100.00`);
    await run(limitCommand, `set ${whose} --kind budget --window day --limit 10`);
    assert.deepEqual(await run(limitCommand, `set ${whose} --kind requests_per_minute --limit 0`), [
      'budget day\t10 USD\tset by platform',
      'budget month\t100 USD\tset by platform',
      'requests_per_minute\t0\tset by platform',
    ]);
    await run(limitCommand, `remove ${whose} --kind budget --window month`);
    await assert.rejects(
      run(limitCommand, `remove ${whose} --kind budget --window month`),
      /there is no limit "budget month" on /,
    );
    const left = ['budget day\t10 USD\tset by platform', 'requests_per_minute\t0\tset by platform'];
    assert.deepEqual(await run(limitCommand, `list ${whose}`), left);
  }
  const own = ['budget day\t10 USD\tset by platform', 'requests_per_minute\t0\tset by platform'];
  assert.deepEqual(await run(limitCommand, 'list --organization limits'), [
    ...own,
    ...['team lab', 'user ann@limits.test', 'key ci'].flatMap((scope) => own.map((line) => `${line}\t${scope}`)),
  ]);
  for (const wrong of [
    '--kind requests --limit 5',
    '--kind budget --limit 5',
    '--kind budget --window year --limit 5',
    '--kind budget --window day --limit -5',
    '--kind budget --window day --limit 1e5',
    '--kind requests_per_minute --window day --limit 5',
    '--kind requests_per_minute --limit 1.5',
    '--kind requests_per_minute --limit -1',
    '--kind requests_per_minute',
    '--limit 5',
    '--team lab --key ci --kind requests_per_minute --limit 5',
    '--team lab --user ann@limits.test --kind requests_per_minute --limit 5',
  ]) {
    await assert.rejects(run(limitCommand, `set --organization limits ${wrong}`), { name: 'UsageFault' }, wrong);
  }
  await assert.rejects(
    run(limitCommand, 'list --organization limits --key none'),
    /there is no key "none" of "limits"/,
  );
  await assert.rejects(
    run(limitCommand, 'list --organization limits --user zoe@limits.test'),
    /there is no member "zoe@limits.test" of "limits"/,
  );
  assert.equal((await actionsOf('limits')).filter((action) => action === 'limits.replace').length, 4 * 5);
});

const shownLists = (models: string) => [
  `allowed\t${models}`,
  `set by platform\t${models}`,
  'set by organization\tevery model',
];

test('model access: of an organization, team and key; set, shown, cleared', async () => {
  for (const id of ['m/a', 'm/b']) {
    await postgres.query(
      `INSERT INTO models (id, display_name, kind, tokenizer) VALUES ($1, $1, 'text', 'o200k_base')`,
      [id],
    );
  }
  await run(orgCommand, 'create --slug access --owner ann@access.test');
  await run(teamCommand, 'create --organization access --slug lab');
  const [secret] = await run(keyCommand, 'create --organization access --name ci --team lab');
  for (const scope of ['', ' --team lab', ' --key ci']) {
    const whose = `--organization access${scope}`;
    assert.deepEqual(await run(accessCommand, `show ${whose}`), shownLists('every model'));
    assert.deepEqual(await run(accessCommand, `set ${whose} --models m/a,m/b`), shownLists('m/a,m/b'));
    assert.deepEqual(await run(accessCommand, `set ${whose} --models m/b`), shownLists('m/b'));
    assert.deepEqual((await principalOf(secret))?.allowedModels, new Set(['m/b']));
    assert.deepEqual(await run(accessCommand, `clear ${whose}`), shownLists('every model'));
    await assert.rejects(
      run(accessCommand, `set ${whose} --models m/none`),
      /names the model "m\/none", which is not in the catalog/,
    );
    assert.deepEqual(await run(accessCommand, `show ${whose}`), shownLists('every model'));
  }
  for (const line of [
    'set --organization access',
    'set --organization access --models m/a,',
    'clear --organization access --models m/a',
    'set --models m/a',
  ]) {
    await assert.rejects(run(accessCommand, line), { name: 'UsageFault' }, line);
  }
  assert.equal((await actionsOf('access')).filter((action) => action === 'model_access.set').length, 3 * 3);
});

test(
  'keys are listed, changed, and those that their users pay for named by id; organizations changed; ' + 'tokens listed',
  async () => {
    await run(orgCommand, 'create --slug wallets --owner ann@wallets.test');
    const create = 'create --organization wallets --name ci';
    const [given] = await run(keyCommand, create);
    const [own] = await run(keyCommand, `${create} --user ann@wallets.test --payer user --expires 2999-01-31`);
    const listed = async () => (await run(keyCommand, 'list --organization wallets')).map((line) => line.split('\t'));
    const [[, ...first] = [], [ownId = '', ...second] = []] = await listed();
    assert.deepEqual(first, ['ci', given?.slice(0, 10), 'paid by organization', 'never expires']);
    assert.deepEqual(second, ['ci', own?.slice(0, 10), 'paid by user', 'expires 2999-01-31T23:59:59.999Z']);
    assert.equal((await run(keyCommand, 'list --organization wallets --user ann@wallets.test')).length, 1);
    await run(keyCommand, 'update --organization wallets --name ci --rename build --expires 2999-01-31');
    await run(keyCommand, `update --organization wallets --name ${ownId} --expires never --models all`);
    assert.deepEqual(
      (await listed()).map(([, name, , , expires]) => [name, expires]),
      [
        ['build', 'expires 2999-01-31T23:59:59.999Z'],
        ['ci', 'never expires'],
      ],
    );
    await assert.rejects(run(keyCommand, 'update --organization wallets --name build'), {
      name: 'UsageFault',
      message: /nothing to change/,
    });
    await assert.rejects(
      run(keyCommand, 'revoke --organization wallets --name ci'),
      /there is no key "ci" of "wallets"/,
    );
    await run(keyCommand, `revoke --organization wallets --name ${ownId}`);
    assert.equal(await principalOf(own), null);
    assert.notEqual(await principalOf(given), null);

    const [updated = ''] = await run(orgCommand, 'update --slug wallets --name Wallets --billing none --frozen yes');
    assert.match(updated, /^wallets\tnone\tfrozen\tWallets\t[0-9a-f-]{36}$/);
    await assert.rejects(run(orgCommand, 'update --slug wallets --frozen maybe'), { name: 'UsageFault' });
    await assert.rejects(run(orgCommand, 'update --slug wallets'), { name: 'UsageFault' });
    const [id = ''] = ((await run(tokenCommand, 'create --user ann@wallets.test --name laptop'))[0] ?? '').split('\t');
    await run(tokenCommand, `revoke --id ${id}`);
    const [token = ''] = await run(tokenCommand, 'list --user ann@wallets.test');
    assert.match(token, new RegExp(`^${id}\tlaptop\ttgt-.{6}\trevoked$`));
  },
);
