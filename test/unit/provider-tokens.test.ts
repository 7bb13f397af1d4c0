// The tokens that stand in the place of a provider's key: what a configuration may say of them, and what is sent to
// obtain one.

import assert from 'node:assert/strict';
import { verify } from 'node:crypto';
import { describe, test } from 'node:test';
import { configuredProvider, requestedProvider } from '../../src/domain/configuration/schema/provider-schema.ts';
import type { TokenFields, TokenSecret } from '../../src/domain/configuration/schema/token-schema.ts';
import { makeBedrockToken } from '../../src/upstream/tokens/bedrock-token.ts';
import { type FormAnswer, obtainToken, type TokenAnswer } from '../../src/upstream/tokens/obtain-token.ts';
import { SERVICE_ACCOUNT_KEY, SERVICE_ACCOUNT_PUBLIC_KEY } from '../support/google-account-key.ts';
import { HeldClock } from '../support/upstream-calls.ts';

const CREDENTIALS = {
  type: 'service_account',
  project_id: 'acme-1',
  client_email: 'gateway@acme-1.test',
  private_key: SERVICE_ACCOUNT_KEY,
  private_key_id: 'key-1',
};
const GOOGLE = { kind: 'google', credentials: JSON.stringify(CREDENTIALS) };
const ENTRA = { kind: 'entra', tenant: 'tenant-1', client_id: 'app-1', client_secret: 'entra~secret' };
const AWS = {
  kind: 'aws',
  region: 'eu-west-1',
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};

describe('token of a provider', () => {
  const read = (token: unknown, more: object = {}) =>
    configuredProvider.safeParse({ id: 'p', base_url: 'https://a.test', token, ...more });

  for (const [token, settings, secret] of [
    [
      GOOGLE,
      { kind: 'google', account: 'gateway@acme-1.test', scope: 'https://www.googleapis.com/auth/cloud-platform' },
      {
        kind: 'google',
        client_email: 'gateway@acme-1.test',
        private_key: SERVICE_ACCOUNT_KEY,
        private_key_id: 'key-1',
        token_uri: 'https://oauth2.googleapis.com/token',
      },
    ],
    [
      ENTRA,
      {
        kind: 'entra',
        tenant: 'tenant-1',
        client_id: 'app-1',
        scope: 'https://cognitiveservices.azure.com/.default',
        authority: 'https://login.microsoftonline.com',
      },
      { kind: 'entra', client_secret: 'entra~secret' },
    ],
    [
      AWS,
      { kind: 'aws', region: 'eu-west-1', access_key_id: AWS.access_key_id },
      { kind: 'aws', secret_access_key: AWS.secret_access_key },
    ],
  ] as const) {
    test(`${token.kind}: what is public is apart from the secret, and it is sent as a bearer`, () => {
      const { data } = read(token, { preset: 'azure', with: { resource: 'acme' } });
      assert.deepEqual(data?.requests?.token, settings);
      assert.deepEqual([data.apiKey, JSON.parse(data.tokenSecret ?? '')], ['', secret]);
      assert.equal(data.auth, 'bearer');
      assert.equal(read(token, { auth: { header: 'x-token' } }).data?.auth, 'x-token');
    });

    test(`${token.kind}: what is shown can be sent back, and the stored secret stays`, () => {
      const found = requestedProvider.parse({ base_url: 'https://a.test', token: settings }).provider('p');
      assert.deepEqual([found.apiKey, found.tokenSecret, found.requests?.token], [null, null, settings]);
    });
  }

  const WRONG: Readonly<Record<string, readonly [unknown, object, RegExp]>> = {
    'a key beside it': [AWS, { api_key: 'sk-1' }, /beside a token/],
    'no credential at all': [AWS, { auth: 'none' }, /auth: none/],
    'no secret': [{ ...AWS, secret_access_key: undefined }, {}, /is missing/],
    'no JSON': [{ ...GOOGLE, credentials: 'private' }, {}, /JSON of a service account/],
    'another kind of credentials': [{ ...GOOGLE, credentials: { type: 'external_account' } }, {}, /JSON of a service/],
    'the path of a key': [{ ...GOOGLE, credentials: '/keys/account.json' }, {}, /looks like the path of its file/],
    'a private key that is none': [
      { ...GOOGLE, credentials: { ...CREDENTIALS, private_key: 'private' } },
      {},
      /JSON of a service/,
    ],
    'a token address that is not encrypted': [
      { ...GOOGLE, credentials: { ...CREDENTIALS, token_uri: 'http://a.test/token' } },
      {},
      /JSON of a service/,
    ],
    'an authority that is not encrypted': [{ ...ENTRA, authority: 'http://login.test' }, {}, /https/],
    'an authority with a password': [{ ...ENTRA, authority: 'https://:pw@login.test' }, {}, /https/],
    'a tenant that is a path': [{ ...ENTRA, tenant: 'a/b' }, {}, /must be letters/],
    'another account than that of its key': [{ ...GOOGLE, account: 'other@acme.test' }, {}, /is not the account/],
    'an unknown kind': [{ kind: 'oidc' }, {}, /./],
  };
  for (const [what, [token, more, message]] of Object.entries(WRONG)) {
    test(`${what} is a mistake that is named, without the secret`, () => {
      const { success, error } = read(token, more);
      assert.ok(!success);
      const text = JSON.stringify(error.issues);
      assert.match(text, message);
      assert.ok(!text.includes('private"') && !text.includes(AWS.secret_access_key) && !text.includes('BEGIN'), text);
    });
  }
});

describe('a token for Bedrock', () => {
  // Made by AWS's own generator (@aws/bedrock-token-generator 1.1.0) from the same values at the same time.
  const nowMs = Date.UTC(2026, 10, 24, 22, 30, 15);
  const MADE_BY_AWS = [
    [
      'eu-west-1',
      undefined,
      'bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE' +
        '%2F20261124%2Feu-west-1%2Fbedrock%2Faws4_request&X-Amz-Date=20261124T223015Z&X-Amz-Expires=43200&X-Amz-Signature=' +
        'e83a25584fb801016c65e6a182428b01a4bbb1a7652f675c3e2b624814a9246c&X-Amz-SignedHeaders=host&Version=1',
    ],
    [
      'us-west-2',
      'AQoDYXdzEJr+/=x',
      'bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE' +
        '%2F20261124%2Fus-west-2%2Fbedrock%2Faws4_request&X-Amz-Date=20261124T223015Z&X-Amz-Expires=43200&X-Amz-Security-Token=' +
        'AQoDYXdzEJr%2B%2F%3Dx&X-Amz-Signature=c4972952ae6ddb1bd2f250ffd315f670b131ee9ea26b7e5c8076d666cf11e806' +
        '&X-Amz-SignedHeaders=host&Version=1',
    ],
  ] as const;
  const parametersOf = (address: string) => Object.fromEntries(new URL(`https://${address}`).searchParams);

  for (const [region, sessionToken, expected] of MADE_BY_AWS) {
    test(`is what AWS's generator makes${sessionToken === undefined ? '' : ' of temporary credentials'}`, () => {
      const token = makeBedrockToken({
        accessKeyId: AWS.access_key_id,
        secretAccessKey: AWS.secret_access_key,
        ...(sessionToken === undefined ? {} : { sessionToken }),
        region,
        nowMs,
      });
      const [, encoded = ''] = /^bedrock-api-key-([A-Za-z0-9+/]+=*)$/.exec(token) ?? [];
      const address = Buffer.from(encoded, 'base64').toString();
      assert.ok(address.startsWith('bedrock.amazonaws.com/?') && address.endsWith('&Version=1'), address);
      assert.deepEqual(parametersOf(address), parametersOf(expected));
    });
  }
});

describe('obtaining a token', () => {
  const clock = new HeldClock();
  clock.timeMs = Date.UTC(2026, 10, 24);
  const posted: { url: string; form: Readonly<Record<string, string>> }[] = [];
  const obtain = (token: unknown, answer: FormAnswer): Promise<TokenAnswer> => {
    const { data } = configuredProvider.safeParse({ id: 'p', base_url: 'https://a.test', token });
    return obtainToken({
      settings: data?.requests?.token as TokenFields,
      secret: JSON.parse(data?.tokenSecret ?? '') as TokenSecret,
      clock,
      post: async (url, form) => {
        posted.push({ url, form });
        return answer;
      },
    });
  };
  const good: FormAnswer = { status: 200, body: '{"access_token":"ya29.abc","expires_in":3599,"token_type":"Bearer"}' };

  test('google: a statement that is signed with the account key', async () => {
    assert.deepEqual(await obtain(GOOGLE, good), { ok: true, token: 'ya29.abc', lifeSeconds: 3_599 });
    const { url, form } = posted.at(-1) ?? assert.fail();
    assert.equal(url, 'https://oauth2.googleapis.com/token');
    assert.equal(form['grant_type'], 'urn:ietf:params:oauth:grant-type:jwt-bearer');
    const [header = '', claims = '', signature = ''] = form['assertion']?.split('.') ?? [];
    const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as object;
    assert.deepEqual(decoded(header), { alg: 'RS256', typ: 'JWT', kid: 'key-1' });
    assert.deepEqual(decoded(claims), {
      iss: 'gateway@acme-1.test',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: url,
      iat: clock.timeMs / 1000,
      exp: clock.timeMs / 1000 + 3_600,
    });
    const text = Buffer.from(`${header}.${claims}`);
    assert.ok(verify('RSA-SHA256', text, SERVICE_ACCOUNT_PUBLIC_KEY, Buffer.from(signature, 'base64url')));
  });

  test('entra: the credentials of the application', async () => {
    assert.deepEqual(await obtain(ENTRA, good), { ok: true, token: 'ya29.abc', lifeSeconds: 3_599 });
    assert.deepEqual(posted.at(-1), {
      url: 'https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token',
      form: {
        grant_type: 'client_credentials',
        client_id: 'app-1',
        client_secret: 'entra~secret',
        scope: 'https://cognitiveservices.azure.com/.default',
      },
    });
  });

  test('one that says it is valid for ever is renewed all the same', async () => {
    for (const life of ['1e300', '"Infinity"', '9007199254740993']) {
      const found = await obtain(ENTRA, { status: 200, body: `{"access_token":"a","expires_in":${life}}` });
      assert.ok(!found.ok || found.lifeSeconds === 86_400, JSON.stringify(found));
    }
  });

  test('aws: without a call', async () => {
    const before = posted.length;
    const found = await obtain(AWS, { status: null, reason: 'nobody is called' });
    assert.ok(found.ok && found.token.startsWith('bedrock-api-key-') && found.lifeSeconds === 43_200);
    assert.equal(posted.length, before);
  });

  const FAILURES: Readonly<Record<string, readonly [FormAnswer, string]>> = {
    'a refusal': [
      { status: 400, body: '{"error":"invalid_grant","error_description":"Invalid JWT\\n Signature."}' },
      'answered 400, invalid_grant: Invalid JWT Signature. (the private key is not, or no longer, one of this account)',
    ],
    'a refusal that is not known': [
      { status: 400, body: '{"error":"x","error_description":"a\\u0000b\\u001bc"}' },
      'answered 400, x: a b c',
    ],
    'a refusal that quotes the secret': [
      { status: 400, body: '{"error":"x","error_description":"no such client_secret=entra~secret"}' },
      'answered 400, and repeated the secret that was sent, so its text is not shown',
    ],
    'a refusal that quotes the form as it was sent': [
      { status: 400, body: '{"error":"x","error_description":"got client_secret=entra%7Esecret&scope=y"}' },
      'answered 400, and repeated the secret that was sent, so its text is not shown',
    ],
    'a refusal whose code is the secret, as a program writes it': [
      { status: 400, body: '{"error":"entra%7esecret"}' },
      'answered 400, and repeated the secret that was sent, so its text is not shown',
    ],
    'a client_secret that has expired': [
      { status: 401, body: '{"error":"invalid_client","error_description":"AADSTS7000222: The keys are expired."}' },
      'answered 401, invalid_client: AADSTS7000222: The keys are expired. (client_secret has expired)',
    ],
    'a page': [{ status: 502, body: '<html>' }, 'answered 502'],
    'no token': [{ status: 200, body: '{}' }, 'answered without a token'],
    'a token that would break a header': [
      { status: 200, body: '{"access_token":"a\\r\\nb","expires_in":60}' },
      'answered without a token',
    ],
    'no end of it': [
      { status: 200, body: '{"access_token":"a"}' },
      'answered with a token that does not say how long it is valid',
    ],
    'an end that is no number': [
      { status: 200, body: '{"access_token":"a","expires_in":true}' },
      'answered with a token that does not say how long it is valid',
    ],
    'no answer': [{ status: null, reason: 'does not listen at its address' }, 'does not listen at its address'],
  };
  for (const [what, [answer, reason]] of Object.entries(FAILURES)) {
    test(`${what}: the reason says so`, async () => {
      assert.deepEqual(await obtain(ENTRA, answer), { ok: false, reason });
    });
  }

  test('google: a refusal that quotes a part of the statement', async () => {
    await obtain(GOOGLE, good);
    const sent = posted.at(-1)?.form['assertion'] ?? assert.fail();
    for (const part of [sent, sent.slice(-60), encodeURIComponent(sent.slice(20, 80))]) {
      const body = JSON.stringify({ error: 'invalid_request', error_description: `assertion=${part}` });
      const reason = 'answered 400, and repeated the secret that was sent, so its text is not shown';
      assert.deepEqual(await obtain(GOOGLE, { status: 400, body }), { ok: false, reason });
    }
  });
});
