// POST /v1/admin/catalog/check: what a configuration file would change of the catalog, without its secrets, without the
// gateway's environment, and without changing anything.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseWithoutEnvironment } from '../../src/domain/configuration/parse-without-environment.ts';
import { type Front, startFront } from '../support/front.ts';
import { callRoute } from '../support/generation-routes.ts';
import { ADMIN_TOKEN } from '../support/identity-world.ts';

const SECRET = 'sk-the-key-that-is-stored';
const FILE = `
providers:
  - { id: east, base_url: "https://east.test/v1", api_key: "\${EAST_KEY}" }
  - { id: spare, base_url: "https://spare.test", auth: none }
models:
  - id: m/small
    context_length: 1000
    served_by: [{ provider: east, model: small, apis: [chat_completions], price: { input: "1", output: "2" } }]
organizations: [{ slug: acme, billing: none, keys: [{ name: first }], users: [{ email: a@acme.test, role: owner }] }]
`;

interface Checked {
  readonly mistakes: readonly string[];
  readonly differences: readonly { kind: string; id: string; change: string; lines: readonly string[] }[];
  readonly warnings: readonly string[];
  readonly variables: readonly string[];
}

let front: Front;
before(async () => {
  front = await startFront({
    configurationYaml: FILE,
    env: { ADMIN_TOKEN, EAST_KEY: SECRET, PLANTED: 'planted-word' },
  });
});
after(() => front?.stop());

const call = (body: object, key = ADMIN_TOKEN) =>
  callRoute(`${front.url}/v1/admin/catalog/check`, { key, body: JSON.stringify(body) });

async function check(configuration: string, more: object = {}): Promise<Checked> {
  const answer = await call({ configuration, ...more });
  assert.equal(answer.status, 200, answer.body);
  return (JSON.parse(answer.body) as { data: Checked }).data;
}

describe('a check of a file', () => {
  test('the file that was applied has no difference, whatever its keys are', async () => {
    const found = await check(FILE);
    assert.deepEqual([found.mistakes, found.differences, found.variables], [[], [], ['EAST_KEY']]);
  });

  test('names what is added, changed and removed, field by field, and stores nothing of it', async () => {
    const changed = FILE.replace('input: "1"', 'input: "3"')
      .replace(/ {2}- \{ id: spare.*\n/, '  - { id: west, base_url: "https://west.test", auth: none }\n')
      .replace('billing: none', 'billing: prepaid');
    const first = await check(changed);
    assert.deepEqual(
      first.differences.map(({ kind, id, change }) => [kind, id, change]),
      [
        ['provider', 'west', 'added'],
        ['model', 'm/small', 'changed'],
      ],
    );
    assert.match(first.differences[1]?.lines.join() ?? '', /served_by: - .*"1".*served_by: \+ .*"3"/);
    const pruned = await check(changed, { prune: true });
    assert.deepEqual(
      pruned.differences.filter(({ change }) => change === 'removed').map(({ id }) => id),
      ['spare'],
    );
    assert.deepEqual((await check(changed)).differences, first.differences, 'nothing was stored');
    assert.deepEqual((await check(FILE)).differences, []);
  });

  test('mistakes have their lines; what only a missing variable makes wrong is none', async () => {
    const found = await check(
      FILE.replace('apis: [chat_completions]', 'apis: [chats]').replace('id: east', 'id: East'),
    );
    assert.deepEqual(found.differences, []);
    assert.match(found.mistakes.join('\n'), /tollgate\.yaml:3: .*id/);
    assert.match(found.mistakes.join('\n'), /tollgate\.yaml:8: .*apis/);
    const address = FILE.replace('"https://east.test/v1"', '"${EAST_URL}"');
    assert.deepEqual((await check(address)).mistakes, []);
    const given = await check(address, { variables: { EAST_URL: 'https://east.test/v1' } });
    assert.deepEqual([given.differences, given.variables], [[], ['EAST_KEY']]);
    const another = await check(address, { variables: { EAST_URL: 'https://elsewhere.test' } });
    assert.deepEqual(another.differences[0]?.lines, ['base_url: https://east.test/v1 -> https://elsewhere.test']);
  });

  test('shows neither a stored key nor what the environment of a gateway has', async () => {
    const names = ['EAST_KEY', 'PLANTED', 'ADMIN_TOKEN', 'MASTER_KEY', 'DATABASE_URL', 'PATH', '__proto__'];
    for (const name of names) {
      const body = { configuration: FILE.replace('https://spare.test', `https://\${${name}}.test`) };
      const { body: text } = await call(body);
      for (const secret of [SECRET, 'planted-word', ADMIN_TOKEN, 'postgres', '/bin']) assert.ok(!text.includes(secret));
    }
  });

  test('is the platform’s alone, and refuses what is no file', async () => {
    const made = await front.run(['key', 'create', '--organization', 'acme', '--name', 'x']);
    const key = /tg-[\w-]+/.exec(made.output)?.[0] ?? assert.fail(made.output);
    assert.equal((await call({ configuration: FILE }, key)).status, 403);
    assert.equal((await call({})).status, 400);
    assert.equal((await call({ configuration: FILE, variables: { 'a b': 'x' } })).status, 400);
    assert.match((await check('providers: [')).mistakes.join(), /tollgate\.yaml:\d+: /);
    assert.match((await check('a: &a [*a, *a]')).mistakes.join(), /tollgate\.yaml/);
  });
});

test('a file whose variables no one word can stand for says which are wanted', () => {
  const file = `providers: [{ id: p, base_url: "\${URL}", token: { kind: aws, access_key_id: x, secret_access_key: y,
    region: "\${REGION}" } }]`;
  assert.deepEqual(parseWithoutEnvironment(file, {}, 'later'), { mistakes: [], configuration: null });
  const given = parseWithoutEnvironment(file, { URL: 'https://p.test', REGION: 'eu-1' }, 'later');
  assert.deepEqual([given.mistakes, given.configuration?.providers.length], [[], 1]);
});
