// Guardrail policies from a file and over the API: their versions, who is screened by which, how soon gateways follow,
// what the audit log says, and what a test of a text shows.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, ask, organizationIdOf, Tenant } from '../support/identity-world.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

const CARD = 'pay with 4111 1111 1111 1111 please';
const MAIL = 'write to joe@example.com please';
const GUARDRAILS = `guardrails:
  - name: no-cards
    rules: [{ id: cards, detect: [card], stage: input, action: block }]
  - name: watch
    mode: observe
    rules: [{ id: mails, detect: [email], stage: input, action: block }]
`;

const ACME = '    guardrails: { policy: no-cards, add: [watch] }\n';

let upstream: FakeUpstream;
let tollgate: Front;
let acme: Tenant;
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
/** What the provider says, given what it was sent. */
let reply = async (_sent: string): Promise<Json> => ({ choices: [], usage });
before(async () => {
  upstream = await startFakeUpstream(async ({ body }) => ({ body: JSON.stringify(await reply(body.toString())) }));
  const yaml = testConfiguration({ upstreamUrl: upstream.url });
  tollgate = await startFront({
    configurationYaml: GUARDRAILS + yaml.replace('  - slug: acme\n', `  - slug: acme\n${ACME}`),
    env: { ADMIN_TOKEN },
  });
  acme = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'acme'));
});
after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

const admin = (method: string, path: string, body?: Json, status = 200): Promise<Json> =>
  ask(tollgate.url, ADMIN_TOKEN, method, `/v1/admin${path}`, body, status);

async function generate(key: string, content: string) {
  const body = JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content }], max_tokens: 5 });
  const headers = { authorization: `Bearer ${key}` };
  const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
  return { ...answer, json: JSON.parse(answer.body.toString()) as Json };
}

const statusOf = async (key: string, content: string): Promise<number> => (await generate(key, content)).status;

const follows = (what: string, key: string, content: string, expected: number): Promise<unknown> =>
  waitFor(
    what,
    () => statusOf(key, content),
    (status) => status === expected,
  );

const rule = (id: string, entity: string, action = 'block') => ({ id, detect: [entity], stage: 'input', action });

describe('the file', () => {
  test('a rule that blocks blocks its organization, and nobody else', async () => {
    const blocked = await generate(KEYS.acme, CARD);
    assert.equal(blocked.status, 400);
    assert.deepEqual(blocked.json['guardrail'], { policy: 'no-cards', rule: 'cards', entity: 'card', stage: 'input' });
    assert.equal(await statusOf(KEYS.other, CARD), 200);
  });

  test('a policy that observes flags alone', async () => {
    const { status, headers } = await generate(KEYS.acme, MAIL);
    assert.equal(status, 200);
    assert.equal(headers['x-service-guardrail'], 'flagged');
  });

  test('it is in the audit log, as the file’s', async () => {
    const entries = (await admin('GET', '/audit')) as unknown as readonly Json[];
    const put = entries.find(
      ({ action, target }) => action === 'guardrail_policy.put' && (target as Json)['id'] === 'watch',
    );
    assert.ok(put !== undefined);
    assert.equal((put['actor'] as Json)['label'], 'configuration file');
    assert.equal((put['after'] as Json)['version'], 1);
  });
});

describe('policies of an organization', () => {
  test('a version that differs is the next one; one that was made from another is refused', async () => {
    const path = '/guardrails/policies/own';
    const first = await acme.as('PUT', path, { rules: [rule('phones', 'phone')] });
    assert.deepEqual([first['version'], first['set_by']], [1, 'organization']);
    const same = await acme.as('PUT', path, { rules: [rule('phones', 'phone')], version: 1 });
    assert.equal(same['version'], 1);
    const second = await acme.as('PUT', path, { rules: [rule('ibans', 'iban')], version: 1 });
    assert.equal(second['version'], 2);
    await acme.as('PUT', path, { rules: [rule('cards', 'card')], version: 1 }, 409);
    const history = await acme.as('GET', path);
    assert.deepEqual(
      (history['versions'] as readonly Json[]).map(({ version }) => version),
      [2, 1],
    );
    const listed = (await acme.as('GET', '/guardrails/policies')) as unknown as readonly Json[];
    assert.deepEqual(
      listed.map(({ name, set_by: by }) => [name, by]),
      [
        ['no-cards', 'platform'],
        ['watch', 'platform'],
        ['own', 'organization'],
      ],
    );
  });

  test('definitions of a quarter of a megabyte are shown one at a time', async () => {
    const path = '/guardrails/policies/large';
    const words = Array.from({ length: 800 }, (_, index) => `word ${String(index).padStart(6, '0')}`);
    const large = (version: number, mode: string) => ({
      mode,
      rules: Array.from({ length: 10 + version }, (_, index) => ({
        id: `rule-${index}`,
        words: [...words, `version ${version} ${index}`],
        stage: 'input',
        action: 'flag',
      })),
    });
    const sizes: number[] = [];
    for (const version of [1, 2]) {
      const put = await acme.as('PUT', path, large(version, version === 1 ? 'enforce' : 'observe'));
      assert.deepEqual([put['version'], put['versions']], [version, undefined]);
      sizes.push(JSON.stringify(put['definition']).length);
    }
    const present = await acme.as('GET', path);
    assert.deepEqual([present['version'], (present['definition'] as Json)['mode']], [2, 'observe']);
    assert.ok(JSON.stringify(present).length < (sizes[1] ?? 0) + 1_000);
    assert.deepEqual(
      (present['versions'] as readonly Json[]).map((shown) => [shown['version'], shown['rule_count']]),
      [
        [2, 12],
        [1, 11],
      ],
    );
    const earlier = await acme.as('GET', `${path}?version=1`);
    assert.deepEqual([earlier['version'], earlier['definition']], [1, large(1, 'enforce')]);
    await acme.as('GET', `${path}?version=3`, undefined, 404);
    await acme.as('PUT', path, { rules: Array.from({ length: 20 }, (_, index) => rule(`rule-${index}`, 'card')) });
    const listed = (await acme.as('GET', '/guardrails/policies')) as unknown as readonly Json[];
    const shown = listed.find(({ name }) => name === 'large') ?? {};
    const rules = shown['rules'] as readonly Json[];
    assert.deepEqual(
      [shown['rule_count'], rules.length, rules[15], shown['mode'], shown['floor'], shown['definition']],
      [20, 16, { id: 'rule-15', action: 'block', stage: 'input' }, 'enforce', false, undefined],
    );
    await acme.as('DELETE', path);
  });

  test('the platform’s are not theirs to change, nor is a floor', async () => {
    await acme.as('DELETE', '/guardrails/policies/no-cards', undefined, 404);
    await acme.as('PUT', '/guardrails/policies/low', { floor: true, rules: [rule('cards', 'card')] }, 400);
  });

  test('one of the name of a platform’s policy does not take its place where the platform assigns', async () => {
    await acme.as('PUT', '/guardrails/policies/no-cards', { rules: [rule('ips', 'ip')] });
    const path = `/organizations/${acme.id}/guardrails/assignments`;
    await admin('PUT', path, { policies: ['no-cards', 'watch'] });
    assert.equal(await statusOf(KEYS.acme, CARD), 400);
    await admin('PUT', path, { policies: ['watch'] });
    await follows('nothing blocks', KEYS.acme, CARD, 200);
    await admin('PUT', path, { policies: ['no-cards', 'watch'] });
    await follows('the platform’s blocks', KEYS.acme, CARD, 400);
    await acme.as('DELETE', '/guardrails/policies/no-cards');
  });

  test('another organization does not see them', async () => {
    const other = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'other'));
    await other.as('GET', '/guardrails/policies/own', undefined, 404);
    await other.as('PUT', '/guardrails/assignments', { policies: ['own'] }, 400);
  });

  test('one that somebody is screened by stays', async () => {
    await acme.as('PUT', '/guardrails/policies/used', { rules: [rule('phones', 'phone')] });
    await acme.as('PUT', '/guardrails/assignments', { policies: ['used'] });
    await acme.as('DELETE', '/guardrails/policies/used', undefined, 409);
    await acme.as('PUT', '/guardrails/assignments', { policies: [] });
    assert.equal((await acme.as('DELETE', '/guardrails/policies/used'))['removed'], true);
    await acme.as('GET', '/guardrails/policies/used', undefined, 404);
    assert.equal((await acme.as('PUT', '/guardrails/policies/used', { rules: [rule('ips', 'ip')] }))['version'], 3);
  });

  test('a definition with a mistake says which', async () => {
    const put = (definition: Json) =>
      httpCall(`${tollgate.url}/v1/admin/active-org/guardrails/policies/wrong`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${acme.owner.token}` },
        body: JSON.stringify(definition),
      });
    const patterns = (regex: string) => ({
      rules: [{ id: 'a', patterns: [{ regex, max_length: 10 }], stage: 'both', action: 'mask' }],
    });
    for (const [definition, said] of [
      [patterns('(a)\\1'), 'RE2'],
      [patterns('^a'), 'no ^ or $'],
      [patterns('a*'), 'empty text'],
      [{ rules: [{ id: 'a', stage: 'both', action: 'mask' }] }, 'finds nothing'],
      [{ rules: [{ ...rule('a', 'card'), action: 'cloak', stage: 'output' }] }, 'must be input'],
      [{ rules: [rule('a', 'card'), rule('a', 'iban')] }, 'another rule has the id'],
      [{ rules: [{ id: 'a', external: 'ner', stage: 'input', action: 'flag' }] }, 'there is no'],
      [{ rules: [{ id: 'a', words: ['x'], stage: 'both', action: 'mask' }] }, 'at least 2 bytes'],
      [{ rules: [rule('a', 'card')], modes: 'enforce' }, 'modes'],
      [{ rules: [{ ...rule('a', 'card'), scop: 'key' }] }, 'scop'],
      [{ rules: [rule('a', 'card')], allow: { domains: [] } }, 'domains'],
      [
        {
          rules: Array.from({ length: 5 }, (_, index) => ({
            ...patterns('x').rules[0],
            id: `a${index}`,
            patterns: Array.from({ length: 13 }, (__, number) => ({ regex: `a${index}b${number}`, max_length: 9 })),
          })),
        },
        'at most 64 patterns',
      ],
    ] as const) {
      const { status, body } = await put(definition);
      assert.equal(status, 400, said);
      assert.ok(body.toString().includes(said), `${said}: ${body.toString()}`);
    }
  });
});

test('a version that a request was begun with stays its own to the end', async () => {
  const other = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'other'));
  const path = '/guardrails/policies/changing';
  const people = { id: 'people', detect: ['email'], stage: 'input', action: 'cloak' };
  const words = (word: string) => ({ id: 'words', words: [word], stage: 'output', action: 'mask' });
  await other.as('PUT', path, { rules: [people, words('falcon')] });
  await other.as('PUT', '/guardrails/assignments', { policies: ['changing'] });
  await waitFor(
    'the first version to be in force',
    () => generate(KEYS.other, MAIL),
    ({ headers }) => headers['x-service-guardrail'] === 'cloaked',
  );
  const before = reply;
  const held: (() => void)[] = [];
  const told: string[] = [];
  reply = async (sent) => {
    if (sent.includes('first')) await new Promise<void>((resolve) => held.push(resolve));
    told.push(sent);
    const placeholder = /TGE\d{12}/.exec(sent)?.[0] ?? 'nobody';
    return { choices: [{ index: 0, message: { content: `falcon and heron for ${placeholder}` } }], usage };
  };
  const first = generate(KEYS.other, `first ${MAIL}`);
  await waitFor(
    'the provider to be asked',
    () => held.length,
    (count) => count === 1,
  );
  await other.as('PUT', path, { rules: [words('heron')] });
  const second = await waitFor(
    'the second version to be in force',
    () => generate(KEYS.other, MAIL),
    ({ body }) => body.includes('and [words]'),
  );
  assert.ok(second.body.includes('falcon and [words] for nobody'), second.body.toString());
  held[0]?.();
  const answered = await first;
  assert.ok(answered.body.includes('[words] and heron for joe@example.com'), answered.body.toString());
  const id = String(answered.headers['x-service-execution-id']);
  const { body: record } = await waitFor(
    'its record',
    () => httpCall(`${tollgate.url}/v1/generation?id=${id}`, { headers: { authorization: `Bearer ${KEYS.other}` } }),
    ({ status }) => status === 200,
  );
  const versions = record.toString().match(/"version":\d+/g);
  assert.deepEqual([...new Set(versions)], ['"version":1']);
  reply = before;
  await other.as('PUT', '/guardrails/assignments', { policies: [] });
});

describe('who is screened', () => {
  test('organization, team and key add up, and gateways follow', async () => {
    const free = await Tenant.adopt(tollgate.url, await organizationIdOf(tollgate.url, ADMIN_TOKEN, 'free'));
    const team = await free.as('POST', '/teams', { slug: 'lab' }, 201);
    const inTeam = await free.addKey({ team_id: team['id'] });
    const alone = await free.addKey();
    const both = `${CARD} ${MAIL}`;
    await free.as('PUT', '/guardrails/policies/mails', { rules: [rule('mails', 'email')] });
    assert.equal(await statusOf(inTeam.secret, both), 200);

    await free.as('PUT', '/guardrails/assignments', { teams: { lab: ['mails'] } });
    await follows('the team is screened', inTeam.secret, MAIL, 400);
    assert.equal(await statusOf(alone.secret, MAIL), 200);

    await free.as('PUT', '/guardrails/assignments', { keys: { [alone.id]: ['no-cards'] } });
    await follows('the key is screened', alone.secret, CARD, 400);
    assert.equal(await statusOf(alone.secret, MAIL), 200);
    assert.equal(await statusOf(inTeam.secret, CARD), 200);

    await free.as('PUT', '/guardrails/assignments', { policies: ['mails'] });
    await follows('everybody is screened', alone.secret, MAIL, 400);
    await free.as('PUT', '/guardrails/assignments', { except: { teams: [], keys: [alone.id] } });
    await follows('the key is left out', alone.secret, MAIL, 200);
    assert.equal(await statusOf(alone.secret, CARD), 400);
    const shown = await free.as('GET', '/guardrails/assignments');
    assert.deepEqual(shown['organization'], {
      policies: ['mails'],
      teams: { lab: ['mails'] },
      keys: { [alone.id]: ['no-cards'] },
    });
  });

  test('what the platform assigned, an organization can neither take away nor leave out', async () => {
    const keys = (await acme.as('GET', '/keys')) as unknown as readonly Json[];
    await acme.as('PUT', '/guardrails/assignments', {
      policies: [],
      except: { teams: [], keys: keys.map(({ id }) => id) },
    });
    const shown = await acme.as('GET', '/guardrails/assignments');
    assert.deepEqual((shown['platform'] as Json)['policies'], ['no-cards', 'watch']);
    assert.equal(await statusOf(KEYS.acme, CARD), 400);
    const actions = ((await acme.as('GET', '/audit')) as unknown as readonly Json[]).map(({ action }) => action);
    assert.ok(actions.includes('organization.guardrails'));
  });

  test('a floor screens everybody, until it is none any more', async () => {
    await admin('PUT', '/guardrails/policies/floor', { floor: true, rules: [rule('ssn', 'us_ssn')] });
    await follows('everybody is screened', KEYS.other, 'mine is 536-90-4399', 400);
    assert.deepEqual((await acme.as('GET', '/guardrails/assignments'))['floor'], ['floor']);
    await admin('DELETE', '/guardrails/policies/floor');
    await follows('nobody is', KEYS.other, 'mine is 536-90-4399', 200);
  });
});

test('a test shows what would be found, and where', async () => {
  const found = await acme.as('POST', '/guardrails/test', { text: `é ${CARD} ${MAIL}` });
  assert.deepEqual(found['findings'], [
    { policy: 'no-cards', version: 1, rule: 'cards', entity: 'card', action: 'block', start: 11, end: 30 },
    { policy: 'watch', version: 1, rule: 'mails', entity: 'email', action: 'flag', start: 47, end: 62 },
  ]);
  const definition = { rules: [{ id: 'own', words: ['Falcon'], stage: 'both', action: 'mask' }] };
  const draft = await acme.as('POST', '/guardrails/test', { text: 'the falcon', definition });
  assert.deepEqual(
    (draft['findings'] as readonly Json[]).map(({ rule: id, start, end }) => [id, start, end]),
    [['own', 4, 10]],
  );
  assert.deepEqual((await admin('POST', '/guardrails/test', { text: CARD, policy: 'no-cards' }))['not_asked'], []);
});

test('the secret of an external detector is shown nowhere', async () => {
  const secret = 'sk-detector-canary-42';
  const definition = {
    rules: [{ id: 'names', external: 'ner', entities: ['PERSON'], stage: 'input', action: 'flag' }],
    external: { ner: { shape: 'presidio', url: 'https://ner.test/', secret } },
  };
  const put = await acme.as('PUT', '/guardrails/policies/names', definition);
  const audit = await acme.as('GET', '/audit');
  const read = await acme.as('GET', '/guardrails/policies/names');
  assert.ok(!JSON.stringify([put, audit, read]).includes(secret));
  const refused = await httpCall(`${tollgate.url}/v1/admin/active-org/guardrails/policies/names`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${acme.owner.token}` },
    body: JSON.stringify({ ...definition, external: { ner: { shape: 'presidio', url: 'https://elsewhere.test/' } } }),
  });
  assert.equal(refused.status, 400);
  assert.match(
    refused.body.toString(),
    /external.ner.secret.* is not valid: it is needed: the stored one is for another address/,
  );
});

test('what the platform’s rules look for, and where its detectors are, is not shown to those whom they screen', async () => {
  const path = '/guardrails/policies/elsewhere';
  const ner = { shape: 'presidio', url: 'http://presidio.internal:5002/analyze', language: 'de' };
  const names = { id: 'names', external: 'ner', detect: ['email'], stage: 'input', action: 'flag' };
  const secret = { id: 'secret', stage: 'both', action: 'mask', label: 'a secret' };
  const patterns = [{ regex: 'internal-[0-9]{4}', max_length: 13 }];
  const rules = [names, { ...secret, words: ['internal heron'], patterns }];
  const allow = { values: ['internal falcon'] };
  for (const language of ['en', 'de'])
    await admin('PUT', path, { rules, allow, external: { ner: { ...ner, language } } });
  const tenant = await Tenant.create(tollgate.url, 'elsewhere');
  const assignments = `/organizations/${tenant.id}/guardrails/assignments`;
  await admin('PUT', assignments, { policies: ['elsewhere'] });
  assert.deepEqual((await admin('GET', path))['definition'], { rules, allow, external: { ner } });
  const shown = await tenant.as('GET', path);
  assert.deepEqual(shown['definition'], {
    rules: [names, secret],
    external: { ner: { shape: 'presidio', language: 'de' } },
  });
  const earlier = await tenant.as('GET', `${path}?version=1`);
  const listed = await tenant.as('GET', '/guardrails/policies');
  const tried = await tenant.as('POST', '/guardrails/test', { text: 'Ann', policy: 'elsewhere' });
  assert.deepEqual(tried['not_asked'], ['ner']);
  const audit = await tenant.as('GET', '/audit');
  assert.doesNotMatch(JSON.stringify([shown, earlier, listed, tried, audit]), /internal/);
  // An own one shows its own.
  await tenant.as('PUT', path, { rules, allow, external: { ner } });
  assert.deepEqual((await tenant.as('GET', path))['definition'], { rules, allow, external: { ner } });
  await admin('PUT', assignments, { policies: [] });
  await admin('DELETE', path);
});

test('by command: policies are listed, tried, assigned and removed', async () => {
  const run = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { exitCode, output } = await tollgate.run(['guardrail', ...args]);
    return [String(exitCode), ...output.trim().split('\n')];
  };
  assert.deepEqual(await run('list'), [
    '0',
    'no-cards\tversion 1\tplatform\tenforce',
    'watch\tversion 1\tplatform\tobserve',
  ]);
  assert.deepEqual(await run('test', '--policy', 'no-cards', '--text', CARD), ['0', 'cards\tcard\tblock\t9-28']);
  assert.deepEqual(await run('assign', '--organization', 'other', '--policies', 'no-cards'), [
    '0',
    'on_unavailable\trefuse',
    'no-cards\torganization\tplatform',
  ]);
  await follows('the organization is screened', KEYS.other, CARD, 400);
  assert.match((await run('remove', '--policy', 'no-cards')).join(), /^1,.*is screened by it/);
  await run('assign', '--organization', 'other', '--policies', 'none');
  await follows('it is not any more', KEYS.other, CARD, 200);
});
