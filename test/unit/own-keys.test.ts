// Own provider keys, by tables: which kinds there are, which keys are tried for a request and in which order, and what
// is shown of a secret.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Model, ServedBy } from '../../src/domain/models/catalog.ts';
import { destinationOf } from '../../src/domain/models/key-destination.ts';
import type { Price } from '../../src/domain/models/price.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { type KeyCaller, orderAttempts } from '../../src/domain/own-keys/attempt-order.ts';
import { BYOK_DEFAULTS } from '../../src/domain/own-keys/byok-settings.ts';
import { explainKeyUse } from '../../src/domain/own-keys/explain-key-use.ts';
import { allKinds, isKeyProblem, openKinds, ownProvider } from '../../src/domain/own-keys/key-kinds.ts';
import { findOwnDeployment, unratedInMap } from '../../src/domain/own-keys/own-deployment.ts';
import { labelOf, type OwnKey, presentState } from '../../src/domain/own-keys/own-key.ts';
import { KeyPauses } from '../../src/generation/own-keys/key-pauses.ts';
import { OrganizationKeys } from '../../src/generation/own-keys/organization-keys.ts';

const NOW = 1_000_000;
const CALLER: KeyCaller = { apiKeyId: 'k1', teamId: 't1', userId: 'u1' };

let made = 0;
function key(fields: Partial<OwnKey> = {}): OwnKey {
  made += 1;
  return {
    id: `id-${String(made).padStart(4, '0')}`,
    organizationId: 'o',
    kind: 'openai',
    name: `key ${made}`,
    label: null,
    fingerprint: '00000000',
    givenFor: null,
    place: 'before',
    position: made,
    fallback: 'inherit',
    models: null,
    teams: null,
    apiKeys: null,
    users: null,
    settings: {},
    baseUrl: null,
    modelMap: {},
    state: 'active',
    stateReason: null,
    stateUntilMs: null,
    verifiedAtMs: null,
    lastUsedAtMs: null,
    expiresAtMs: null,
    rotatedAtMs: null,
    previousUntilMs: null,
    createdAtMs: 0,
    ...fields,
  };
}

function order(
  keys: readonly OwnKey[],
  {
    fallback = false,
    serves = 'a deployment' as string | null,
    isKnown = true,
    isOpen = true,
    hasFeeBasis = true,
    needsSecret = false,
  } = {},
) {
  const candidates = keys.map((one) => ({ key: one, serves, isKnown, hasFeeBasis, isOpen, needsSecret }));
  const found = orderAttempts(candidates, { modelId: 'a/model', caller: CALLER, fallback, nowMs: NOW });
  return {
    before: found.before.map((attempt) => attempt.key.name),
    service: found.usesService,
    after: found.after.map((attempt) => attempt.key.name),
    concerns: found.concerns,
    notTried: Object.fromEntries(found.notTried.map(({ key: { name }, why }) => [name, why])),
  };
}

describe('the order of attempts', () => {
  test('own keys before by position, the service, own keys after by position', () => {
    const keys = [
      key({ name: 'late', position: 9, fallback: 'on' }),
      key({ name: 'behind', place: 'after', position: 0, fallback: 'on' }),
      key({ name: 'early', position: 2, fallback: 'on' }),
    ];
    const expected = { before: ['early', 'late'], service: true, after: ['behind'], concerns: true, notTried: {} };
    assert.deepEqual(order(keys), expected);
  });

  test('no more than three own attempts', () => {
    const keys = [1, 2, 3, 4].map((position) => key({ name: `${position}`, position }));
    assert.deepEqual(order(keys).before, ['1', '2', '3']);
    assert.deepEqual(order(keys).notTried, { 4: 'too_many_before' });
  });

  /** Whether the service may serve, with this key beside what the organization has set. */
  const rows: readonly [words: string, fields: Partial<OwnKey>, fallback: boolean, service: boolean][] = [
    ['by default it may not', {}, false, false],
    ['the organization allows it', {}, true, true],
    ['the key forbids what the organization allows', { fallback: 'off' }, true, false],
    ['the key allows what the organization does not', { fallback: 'on' }, false, true],
    ['an invalid key forbids it all the same', { state: 'invalid' }, false, false],
    ['a key that cools down too', { state: 'cooling_down', stateUntilMs: NOW + 1 }, false, false],
    ['an expired key too', { expiresAtMs: NOW }, false, false],
    ['a key placed after too', { place: 'after' }, false, false],
    ['a key that is turned off does not', { state: 'disabled' }, false, true],
    ['nor one for other models', { models: ['another/model'] }, false, true],
    ['nor one for other teams', { teams: ['t2'] }, false, true],
    ['nor one for other inference keys', { apiKeys: ['k2'] }, false, true],
    ['nor one for other people', { users: ['u2'] }, false, true],
    ['one for this model, team, key and person does', ofThisCaller(), false, false],
  ];
  for (const [words, fields, fallback, service] of rows)
    test(`the service: ${words}`, () => assert.equal(order([key(fields)], { fallback }).service, service));

  test('one key that forbids the service is enough', () => {
    assert.equal(order([key({ fallback: 'on' }), key({ fallback: 'off' })]).service, false);
  });

  test('a kind that the platform has closed leaves the key unusable, and does not make the service serve unasked', () => {
    const found = order([key({ name: 'closed' })], { isOpen: false });
    assert.deepEqual(found.notTried, { closed: 'kind_not_allowed' });
    assert.deepEqual([found.service, found.concerns], [false, true]);
  });

  test('a model that the kind does not serve is none of its business', () => {
    const found = order([key({ name: 'other' })], { serves: null });
    assert.deepEqual(found, {
      before: [],
      service: true,
      after: [],
      concerns: false,
      notTried: { other: 'model_not_served' },
    });
  });

  test('a key whose provider the catalog has no more takes the service out all the same, and cannot be used', () => {
    const gone = { serves: null, isKnown: false };
    const found = order([key({ name: 'gone' })], gone);
    assert.deepEqual(
      [found.before, found.service, found.concerns, found.notTried],
      [[], false, true, { gone: 'provider_unknown' }],
    );
    assert.equal(order([key({ fallback: 'on' })], gone).service, true);
    for (const other of [{ models: ['another/model'] }, { teams: ['t2'] }, { state: 'disabled' }] as const)
      assert.equal(order([key(other)], gone).service, true);
  });

  test('a key that was given for another address is not used, and keeps the service out', () => {
    const found = order([key({ name: 'moved' })], { needsSecret: true });
    assert.deepEqual(found.notTried, { moved: 'secret_needed' });
    assert.deepEqual([found.before, found.service, found.concerns], [[], false, true]);
  });

  test('a caller without a team or a person is in no list of them', () => {
    const usable = { serves: 'a deployment', hasFeeBasis: true, isKnown: true, isOpen: true, needsSecret: false };
    const candidates = [{ ...usable, key: key({ teams: ['t1'] }) }];
    const caller = { apiKeyId: 'k1', teamId: null, userId: null };
    const found = orderAttempts(candidates, { modelId: 'a/model', caller, fallback: false, nowMs: NOW });
    assert.equal(found.notTried[0]?.why, 'other_callers');
  });
});

function ofThisCaller(): Partial<OwnKey> {
  return { models: ['a/model'], teams: ['t1'], apiKeys: ['k1'], users: ['u1'] };
}

const OPENAI: Provider = {
  id: 'openai',
  baseUrl: 'https://openai.gateway.test',
  apiKey: 'sk-of-the-operator',
  auth: 'bearer',
  onDisconnect: 'cancel',
  storedObjects: 'shared',
};
const MODEL: Model = {
  id: 'a/model',
  displayName: 'A model',
  kind: 'text',
  aliases: [],
  contextLength: null,
  maxOutputTokens: null,
  maxCompletionTokensCap: null,
  attachmentTokensMax: null,
  tokenizer: 'o200k_base',
  active: true,
  createdAtMs: 0,
  servedBy: [{ provider: OPENAI, providerModel: 'theirs', apis: ['chat_completions', 'responses'], price: null }],
};
const DEARER = { version: 'dearer', input: 9n, output: 9n } as unknown as Price;
const CATALOG = { models: [MODEL] };

describe('kinds of own keys', () => {
  test('are configured providers, hosted presets and custom; a configured one stands for its preset', () => {
    const names = allKinds(CATALOG).map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    for (const name of ['openai', 'anthropic', 'azure', 'custom']) assert.ok(names.includes(name), name);
    for (const name of ['ollama', 'vllm']) assert.ok(!names.includes(name), `${name} is a server of the operator`);
  });

  test('are those that the platform opens, and none before it does', () => {
    assert.deepEqual(openKinds(CATALOG, BYOK_DEFAULTS), []);
    const opened = openKinds(CATALOG, { ...BYOK_DEFAULTS, enabled: true, kinds: ['openai', 'custom'] });
    assert.deepEqual(
      opened.map(({ name }) => name),
      ['openai'],
    );
  });

  test('a configured provider is called where it is, with neither its key nor its stored objects', () => {
    const own = ownProvider(CATALOG, 'openai', { settings: {}, baseUrl: null });
    assert.ok(!isKeyProblem(own));
    assert.equal(own.provider.baseUrl, OPENAI.baseUrl);
    assert.equal(own.provider.apiKey, '');
    assert.equal(own.provider.storedObjects, undefined);
    assert.equal(own.isGuarded, false);
  });

  test('a provider that would serve without a key of its own is none: it would serve on the operator’s account', () => {
    const of = (fields: object) => ({
      models: [
        { ...MODEL, servedBy: [{ ...MODEL.servedBy[0], provider: { ...OPENAI, id: 'inner', ...fields } }] } as Model,
      ],
    });
    const requests = { tls: { cert: '/etc/cert.pem', key: '/etc/key.pem' } };
    for (const fields of [{ auth: 'none' }, { requests }]) {
      assert.ok(!allKinds(of(fields)).some(({ name }) => name === 'inner'), JSON.stringify(fields));
      assert.ok(isKeyProblem(ownProvider(of(fields), 'inner', { settings: {}, baseUrl: null })));
    }
    assert.ok(!isKeyProblem(ownProvider(of({}), 'inner', { settings: {}, baseUrl: null })));
  });

  test('what a customer says is part of one name in the address, and every connection to it is checked', () => {
    const own = ownProvider(CATALOG, 'azure', { settings: { resource: 'acme-eu' }, baseUrl: null });
    assert.ok(!isKeyProblem(own));
    assert.equal(own.provider.baseUrl, 'https://acme-eu.openai.azure.com/openai/v1');
    assert.equal(own.isGuarded, true);
  });

  const refused: readonly [kind: string, settings: Record<string, string>, baseUrl: string | null, field: string][] = [
    ['azure', {}, null, 'settings'],
    ['azure', { resource: 'evil.test:443/' }, null, 'settings.resource'],
    ['azure', { resource: '127.0.0.1' }, null, 'settings.resource'],
    ['azure', { resource: 'a', other: 'b' }, null, 'settings'],
    ['vllm', { address: 'a' }, null, 'settings'],
    ['vllm', {}, null, 'kind'],
    ['nobody', {}, null, 'kind'],
    ['__proto__', {}, null, 'kind'],
    ['openai', {}, 'https://elsewhere.test', 'base_url'],
    ['custom', {}, null, 'base_url'],
    ['custom', {}, 'http://plain.test', 'base_url'],
    ['custom', {}, 'https://user@host.test', 'base_url'],
    ['custom', {}, 'https://host.test/v1?query', 'base_url'],
    ['custom', {}, 'https://host.test/v1#part', 'base_url'],
    ['custom', {}, 'https://host.test/a/../b', 'base_url'],
    ['custom', {}, 'https://host.test/a/%2e%2E/b', 'base_url'],
    ['custom', {}, 'https://host.test/\\evil.test', 'base_url'],
    ['custom', {}, 'https://höst.test/', 'base_url'],
    ['custom', { auth: 'none' }, 'https://host.test', 'settings'],
  ];
  for (const [kind, settings, baseUrl, field] of refused) {
    test(`refused: ${kind} ${JSON.stringify(settings)} ${baseUrl}`, () => {
      const found = ownProvider(CATALOG, kind, { settings, baseUrl });
      assert.ok(isKeyProblem(found), JSON.stringify(found));
      assert.equal(found.field, field);
    });
  }

  test('a custom host is called below the address that was given', () => {
    const own = ownProvider(CATALOG, 'custom', { settings: { auth: 'x-api-key' }, baseUrl: 'https://llm.test/api/' });
    assert.ok(!isKeyProblem(own));
    assert.deepEqual(
      [own.provider.baseUrl, own.provider.auth, own.isGuarded],
      ['https://llm.test/api', 'x-api-key', true],
    );
  });
});

describe('who would serve a request', () => {
  const settings = { ...BYOK_DEFAULTS, enabled: true, customBaseUrl: true };
  const params = {
    settings,
    catalog: CATALOG,
    model: MODEL,
    api: 'chat_completions',
    ownPrice: null,
    caller: CALLER,
    nowMs: NOW,
    pauseOf: () => null,
  } as const;

  test('an own key by the model of its provider, the service behind it where that is allowed', () => {
    const found = explainKeyUse({ ...params, keys: [key({ fallback: 'on' })] });
    const shown = found.attempts.map(({ source, providerModel }) => [source, providerModel]);
    assert.deepEqual(shown, [
      ['own', 'theirs'],
      ['service', 'theirs'],
    ]);
  });

  test('a custom host by the model that it is said to have', () => {
    const custom = { kind: 'custom', baseUrl: 'https://llm.test', modelMap: { 'a/model': 'our-deployment' } };
    const found = explainKeyUse({ ...params, keys: [key(custom), key({ ...custom, modelMap: {} })] });
    assert.deepEqual(
      found.attempts.map(({ providerModel }) => providerModel),
      ['our-deployment'],
    );
    assert.deepEqual(
      found.notTried.map(({ why }) => why),
      ['model_not_served'],
    );
  });

  test('a key that rests for now is not tried; all resting for their rate is another refusal', () => {
    const keys = [key({ fallback: 'on' })];
    const found = explainKeyUse({ ...params, keys, pauseOf: () => 'quota' });
    assert.deepEqual(
      [found.attempts.map(({ source }) => source), found.notTried.map(({ why }) => why), found.refusal],
      [['service'], ['quota_exhausted'], null],
    );
    const alone = [key(), key()];
    const refusal = (meanings: readonly ('rate' | 'key')[]) =>
      explainKeyUse({ ...params, keys: alone, pauseOf: (one) => meanings[alone.indexOf(one)] ?? null }).refusal;
    assert.deepEqual(
      [refusal(['rate', 'rate']), refusal(['rate', 'key']), refusal(['rate'])],
      ['upstream_cooldown', 'byok_key_unavailable', null],
    );
    const rotated = [key({ previousUntilMs: NOW + 1 })];
    assert.equal(explainKeyUse({ ...params, keys: rotated, pauseOf: () => 'key' }).attempts.length, 1);
  });

  test('nobody, where own keys are for it, none is usable and the service may not', () => {
    const found = explainKeyUse({ ...params, keys: [key({ state: 'invalid' })] });
    assert.deepEqual([found.attempts, found.refusal], [[], 'byok_key_unavailable']);
    const off = { ...settings, enabled: false };
    assert.equal(explainKeyUse({ ...params, settings: off, keys: [key()] }).refusal, 'byok_key_unavailable');
  });

  describe('a model_map while the fee is a share of the price', () => {
    const percent = { ...settings, customBaseUrl: false, fee: { kind: 'percent', basisPoints: 1_000 } } as const;
    const price = { ...MODEL.servedBy[0], providerModel: 'dearer' } as ServedBy;
    const dearer = { ...MODEL, id: 'a/dearer', servedBy: [{ ...price, price: DEARER }] } as Model;
    const models = [MODEL, dearer];
    const mapped = (name: string) => key({ modelMap: { 'a/model': name } });

    test('is rated by the model that it names', () => {
      const own = findOwnDeployment(mapped('dearer'), {
        models,
        model: MODEL,
        api: 'chat_completions',
        apis: ['chat_completions'],
        ownPrice: null,
        fee: percent.fee,
      });
      assert.equal(own?.price, DEARER);
    });

    test('to a model without a known price makes the key unusable, and not the service serve', () => {
      const found = explainKeyUse({ ...params, settings: percent, catalog: { models }, keys: [mapped('unknown')] });
      assert.deepEqual([found.attempts, found.refusal], [[], 'byok_key_unavailable']);
      assert.equal(found.notTried[0]?.why, 'mapped_model_without_price');
      assert.equal(unratedInMap(mapped('unknown'), models, percent.fee), 'unknown');
      assert.equal(unratedInMap(mapped('dearer'), models, percent.fee), null);
      assert.equal(unratedInMap(mapped('unknown'), models, null), null);
    });

    test('to the catalog’s own name changes nothing', () => {
      const found = explainKeyUse({ ...params, settings: percent, catalog: { models }, keys: [mapped('theirs')] });
      assert.equal(found.attempts.length, 1);
    });
  });

  test('the service alone, on an API that the key does not serve', () => {
    const messages = { ...MODEL.servedBy[0], provider: { ...OPENAI, id: 'other' }, apis: ['messages'] } as const;
    const model = { ...MODEL, servedBy: [...MODEL.servedBy, messages] } as Model;
    const found = explainKeyUse({ ...params, catalog: { models: [model] }, model, api: 'messages', keys: [key()] });
    assert.deepEqual(
      found.attempts.map(({ source, provider }) => [source, provider]),
      [['service', 'other']],
    );
  });
});

test('the secret before a rotation is not used beyond its overlap, however long the keys are held', () => {
  const sealed = {
    key: key({ previousUntilMs: NOW + 5_000 }),
    openSecret: () => 'sk-new',
    openPreviousSecret: () => 'sk-before',
  };
  const settings = { ...BYOK_DEFAULTS, enabled: true };
  const keys = new OrganizationKeys('o', { settings, keys: [sealed], prices: new Map() });
  const secretsAt = (nowMs: number) => {
    const order = keys.order({ models: [MODEL], model: MODEL, api: 'chat_completions', caller: CALLER, nowMs });
    return order.before.flatMap(({ serves }) => serves.map(({ provider }) => provider.apiKey));
  };
  assert.deepEqual(secretsAt(NOW), ['sk-new', 'sk-before']);
  assert.deepEqual(secretsAt(NOW + 5_000), ['sk-new']);
});

test('the secret of a key whose provider has moved is not opened, nor the one before its rotation', () => {
  const given = destinationOf({ ...OPENAI, baseUrl: 'https://before.gateway.test' });
  let opened = 0;
  const open = (): string => `sk-${(opened += 1)}`;
  const sealed = {
    key: key({ givenFor: given, previousUntilMs: NOW + 1, fallback: 'on' }),
    openSecret: open,
    openPreviousSecret: open,
  };
  const set = { settings: { ...BYOK_DEFAULTS, enabled: true }, keys: [sealed], prices: new Map() };
  const keys = new OrganizationKeys('o', set);
  const asked = { model: MODEL, api: 'chat_completions', caller: CALLER, nowMs: NOW } as const;
  const found = keys.order({ ...asked, models: [MODEL] });
  assert.deepEqual(
    [found.before, found.usesService, found.passedOver],
    [[], true, [{ keyId: sealed.key.id, reason: 'secret_needed' }]],
  );
  assert.deepEqual(keys.deploymentsWith(sealed.key.id, { ...asked, models: [MODEL] }), []);
  assert.equal(opened, 0);
  // Where it was before, the same key serves.
  const provider = { ...OPENAI, baseUrl: 'https://before.gateway.test/v1' };
  const back = { ...MODEL, servedBy: [{ ...MODEL.servedBy[0], provider }] } as Model;
  assert.equal(keys.order({ ...asked, models: [back], model: back }).before.length, 1);
});

test('of many keys only the secrets of those that are tried are opened, and each once', () => {
  let opened = 0;
  const many = Array.from({ length: 1_000 }, () => ({
    key: key(),
    openSecret: () => `sk-${(opened += 1)}`,
    openPreviousSecret: () => null,
  }));
  const settings = { ...BYOK_DEFAULTS, enabled: true };
  const keys = new OrganizationKeys('o', { settings, keys: many, prices: new Map() });
  const asked = { models: [MODEL], model: MODEL, api: 'chat_completions', caller: CALLER, nowMs: NOW } as const;
  for (let times = 0; times < 3; times += 1) assert.equal(keys.order(asked).before.length, 3);
  assert.equal(opened, 3);
});

describe('pauses of own keys', () => {
  const use = { organizationId: 'o', keyId: 'k', fingerprint: '00000001', providerModel: 'm' };

  test('what the secret before a rotation was answered pauses the new one not at all', () => {
    const pauses = new KeyPauses();
    // On its way while the key was rotated.
    pauses.begin(use, 'key', null, NOW);
    pauses.begin(use, 'quota', null, NOW);
    assert.notEqual(pauses.find(use, NOW + 1), null);
    assert.equal(pauses.find({ ...use, fingerprint: '00000002' }, NOW + 1), null);
  });

  test('end with any change of the organization’s keys, whether they are held or not, and with no other’s', () => {
    const pauses = new KeyPauses();
    for (const organizationId of ['o', 'other']) {
      pauses.begin({ ...use, organizationId }, 'quota', null, NOW);
      pauses.begin({ ...use, organizationId }, 'rate', null, NOW);
    }
    pauses.forget('o');
    assert.equal(pauses.find(use, NOW + 1), null);
    assert.equal(pauses.find({ ...use, organizationId: 'other' }, NOW + 1)?.meaning, 'quota');
  });
});

test('a cooldown that is over leaves the key active', () => {
  assert.equal(presentState({ state: 'cooling_down', stateUntilMs: NOW + 1 }, NOW), 'cooling_down');
  assert.equal(presentState({ state: 'cooling_down', stateUntilMs: NOW }, NOW), 'active');
  assert.equal(presentState({ state: 'invalid', stateUntilMs: NOW }, NOW), 'invalid');
});

test('of a short secret nothing is shown', () => {
  assert.equal(labelOf('0123456789012345678'), null);
  assert.equal(labelOf('01234567890123456789'), '…6789');
});
