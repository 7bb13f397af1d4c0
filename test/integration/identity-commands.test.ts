// Identity by command: the operator's way from an empty database to people, tokens and keys, and what the audit log says of it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { administratorCommand } from '../../src/commands/administrator.ts';
import { auditCommand } from '../../src/commands/audit.ts';
import type { Command } from '../../src/commands/command.ts';
import { keyCommand } from '../../src/commands/key.ts';
import { memberCommand } from '../../src/commands/member.ts';
import { orgCommand } from '../../src/commands/org.ts';
import { tokenCommand } from '../../src/commands/token.ts';
import { derivePepper, hashCredential } from '../../src/domain/identity/key-hash.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import { findPrincipalByCredentialHash } from '../../src/storage/postgres/credentials.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';

const masterKey = randomBytes(32);
let server: TestPostgres;
let postgres: Postgres;
let url: string;
before(async () => {
  server = await startTestPostgres();
  url = await server.createDatabase();
  postgres = createPostgres({ url, log: silentLog });
});
after(async () => {
  await postgres.close();
  await server.stop();
});

/** The lines a command printed. */
async function run(command: Command, line: string): Promise<readonly string[]> {
  const printed: string[] = [];
  const environment = { DATABASE_URL: url, MASTER_KEY: masterKey.toString('base64'), USER: 'operator' };
  assert.equal(await command.run(line.split(' '), { environment, print: (text) => void printed.push(text) }), 0);
  return printed;
}

const principalOf = (secret = ''): Promise<Principal | null> => findPrincipalByCredentialHash(postgres, hashCredential(derivePepper(masterKey), secret));

test('from an empty database to people, tokens and keys', async () => {
  await run(orgCommand, 'create --slug acme --owner ann@acme.test');
  assert.deepEqual(await run(orgCommand, 'list'), ['acme\tprepaid\topen\tacme']);
  await assert.rejects(run(orgCommand, 'create --slug acme'), /organization "acme": slug is taken/);

  await run(memberCommand, 'add --organization acme --user bo@acme.test');
  await run(memberCommand, 'add --organization acme --user bo@acme.test --role admin');
  assert.deepEqual(await run(memberCommand, 'list --organization acme'), ['ann@acme.test\towner', 'bo@acme.test\tadmin']);
  await assert.rejects(run(memberCommand, 'remove --organization acme --user ann@acme.test'), /the last owner stays/);
  await assert.rejects(run(memberCommand, 'list --organization other'), /there is no organization "other"/);

  await run(administratorCommand, 'add --user root@platform.test');
  assert.deepEqual(await run(administratorCommand, 'list'), ['root@platform.test']);
  const [tokenId, token] = ((await run(tokenCommand, 'create --user root@platform.test --name laptop --organization acme'))[0] ?? '').split('\t');
  assert.equal((await principalOf(token))?.platformAdmin, true);
  await run(tokenCommand, `revoke --id ${tokenId}`);
  assert.equal(await principalOf(token), null);

  const [first] = await run(keyCommand, 'create --organization acme --name ci --user bo@acme.test --expires 2999-01-31');
  const [second] = await run(keyCommand, 'rotate --organization acme --name ci --overlap 3600');
  assert.equal((await principalOf(first))?.apiKeyId, (await principalOf(second))?.apiKeyId);
  await run(keyCommand, 'revoke --organization acme --name ci');
  assert.deepEqual([await principalOf(first), await principalOf(second)], [null, null]);
  await assert.rejects(run(keyCommand, 'revoke --organization acme --name ci'), /there is no key "ci" of "acme"/);

  const log = (await run(auditCommand, '--organization acme')).map((line) => JSON.parse(line) as { action: string; actor: { label: string } });
  assert.deepEqual(
    log.map(({ action }) => action),
    ['key.revoke', 'key.rotate', 'key.create', 'member.role', 'member.add', 'member.add', 'organization.create'],
  );
  assert.ok(log.every(({ actor }) => actor.label === 'command line: operator'));
  assert.equal((await run(auditCommand, '--limit 2')).length, 2);
});
