// `tollgate doctor` against providers that misbehave over real sockets, and machines on which something is wrong.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { doctorCommand } from '../../src/commands/doctor.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { startRawProvider } from '../support/raw-provider.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startVertexDouble } from '../support/vertex-double.ts';

const SECRETS = {
  MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  ADMIN_TOKEN: 'a-token-that-is-long-enough-to-be-one',
};

function listing(ids: readonly string[], headers: readonly (readonly [string, string])[] = []): Script {
  return {
    headers: [['content-type', 'application/json'], ['date', new Date().toUTCString()], ...headers],
    body: JSON.stringify({ data: ids.map((id) => ({ id })) }),
  };
}

const refusedToken = (status: number, error: string, description: string): Script => ({
  status,
  body: JSON.stringify({ error, error_description: description }),
});

const refusing = (status: number, message: string): Script => ({
  status,
  headers: [['content-type', 'application/json']],
  body: JSON.stringify({ error: { message, type: 'x', code: null } }),
});

function file(url: string, { billing = 'none', price = '{ input: "1", output: "2" }', more = '' } = {}): string {
  return `providers:
  - { id: one, base_url: "${url}", api_key: "\${ONE_KEY}"${more} }
models:
  - id: m
    context_length: 10
    served_by: [{ provider: one, model: gpt-one, apis: [chat_completions]${price === '' ? '' : `, price: ${price}`} }]
organizations: [{ slug: acme, billing: ${billing} }]
`;
}

describe('tollgate doctor', () => {
  let upstream: FakeUpstream;
  let script: Script = listing([]);
  /** Where tokens are obtained; null: as everywhere. */
  let tokenScript: Script | null = null;
  let port = 0;
  before(async () => {
    upstream = await startFakeUpstream(({ path }) => (path.endsWith('/token') ? (tokenScript ?? script) : script));
    port = await findFreePort();
  });
  after(() => upstream.close());

  async function examine(
    context: TestContext,
    text: string | null,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<{ code: number; printed: string; wrong: readonly string[] }> {
    const directory = temporaryDirectory(context);
    const path = join(directory, 'tollgate.yaml');
    if (text !== null) writeFileSync(path, text);
    const lines: string[] = [];
    const code = await doctorCommand.run(['--config', path], {
      environment: { DATA_DIR: join(directory, 'data'), PORT: String(port), ONE_KEY: 'sk-secret', ...environment },
      print: (line) => void lines.push(line),
    });
    const printed = lines.join('\n');
    assert.ok(!printed.includes('sk-secret'), printed);
    const wrong = lines.filter((line) => line.startsWith('WRONG'));
    assert.equal(code, wrong.length === 0 ? 0 : 1);
    return { code, printed, wrong };
  }

  async function onlyWrong(context: TestContext, text: string, expected: RegExp, environment = {}): Promise<void> {
    const { wrong, printed } = await examine(context, text, environment);
    assert.equal(wrong.length, 1, printed);
    assert.match(wrong[0] ?? '', expected);
    assert.match(printed, /\n1 thing is wrong$/);
  }

  test('all is well: the provider is called with its key, nothing is wrong', async (context) => {
    script = listing(['gpt-one']);
    const { code, printed } = await examine(context, file(upstream.url));
    assert.equal(code, 0);
    for (const expected of [
      /^ok {5}\d.* GB are free on the disk of/m,
      /^ok {5}port \d+ on 127\.0\.0\.1 is free \(PORT\)$/m,
      /^ok {5}.*tollgate\.yaml is a configuration$/m,
      /^ok {5}provider "one" \(http:.*\) accepts the key$/m,
      /^ok {5}provider "one" lists the model of the file$/m,
      /^ok {5}the clock of this machine agrees with the providers$/m,
      /\nnothing is wrong$/,
    ])
      assert.match(printed, expected);
    assert.equal(upstream.requests.at(-1)?.header('authorization'), 'Bearer sk-secret');
  });

  test('the key: refused, and the variable that it is from is named', async (context) => {
    script = refusing(401, 'Incorrect API key provided: sk-secret');
    await onlyWrong(context, file(upstream.url), /provider "one" \(.*\) does not accept the key: see ONE_KEY in the/);
  });

  test('the path: an answer that proves nothing is a note', async (context) => {
    script = refusing(404, 'no such path');
    const { printed, code } = await examine(context, file(upstream.url));
    assert.equal(code, 0);
    assert.match(
      printed,
      /^note {3}provider "one" \(.*\) answers 404: base_url or the path that verifies may be wrong$/m,
    );
    assert.match(
      printed,
      /^note {3}provider "one" answers 404 to the request for its models, so its models cannot be checked/m,
    );
  });

  test('the address: one that sends elsewhere, or shows a page for browsers, is wrong', async (context) => {
    for (const status of [301, 302, 307, 308]) {
      script = { status, headers: [['location', 'https://elsewhere.test/v1/models']], body: '' };
      await onlyWrong(
        context,
        file(upstream.url),
        /provider "one" \(.*\) redirects elsewhere \(30\d\): base_url is not that/,
      );
    }
    script = { headers: [['content-type', 'text/html']], body: '<html>' };
    await onlyWrong(context, file(upstream.url), /answers with a page for browsers: base_url is not that of its API$/);
  });

  test('the model: not listed, with names like it; a date in its name is no difference', async (context) => {
    script = listing(['gpt-ones', 'other']);
    await onlyWrong(
      context,
      file(upstream.url),
      /model "m": provider "one" does not list "gpt-one" for this key; names like it: gpt-ones/,
    );
    script = listing(['gpt-one-20260801']);
    assert.equal((await examine(context, file(upstream.url))).code, 0);
  });

  test('a preset of Perplexity’s is no model that a list could have', async (context) => {
    script = listing(['openai/gpt-5.5']);
    const apis = ', apis: { responses: { instead_of_model: { preset: "{model}" } } }';
    const { printed, code } = await examine(context, file(upstream.url, { more: apis }));
    assert.equal(code, 0, printed);
    assert.match(
      printed,
      /^note {3}provider "one" is told "preset" instead of a model, so its models cannot be checked/m,
    );
  });

  test('a token: obtained for the moment, and what is wrong with its account is said', async (context) => {
    const google = await startVertexDouble();
    context.after(() => google.upstream.close());
    const key = JSON.parse(google.credentials) as Record<string, string>;
    const vertex = file(google.baseUrls.vertex)
      .replace(
        'api_key: "${ONE_KEY}"',
        'preset: vertex, with: { project: acme-1 }, token: { kind: google, credentials: "${ACCOUNT}" }',
      )
      .replace('gpt-one', 'google/gemini-x');
    const { printed, code } = await examine(context, vertex, { ACCOUNT: google.credentials });
    assert.equal(code, 0, printed);
    assert.match(printed, /^ok {5}provider "one" \(.*\) has a token that was obtained for it$/m);
    await onlyWrong(
      context,
      vertex,
      /provider "one" gets no token: .*Invalid JWT Signature.* one of this account\): see ACCOUNT in the environment$/,
      { ACCOUNT: JSON.stringify({ ...key, client_email: 'other@acme.test' }) },
    );
    await onlyWrong(context, vertex, /looks like the path of its file/, { ACCOUNT: '/keys/account.json' });
    const entra = (secret: string): string =>
      file(upstream.url).replace(
        'api_key: "${ONE_KEY}"',
        `token: { kind: entra, tenant: t, client_id: app, client_secret: ${secret}, authority: "${upstream.url}" }`,
      );
    for (const [answered, expected] of [
      [
        refusedToken(400, 'invalid_grant', 'Token must be a short-lived token'),
        /the clock of this machine may be wrong/,
      ],
      [refusedToken(401, 'invalid_client', 'AADSTS7000215: x'), /its value is needed, not its id\): see ONE_KEY in/],
      [{ instead: 'close' }, /gets no token: who gives it ended the connection without an answer/],
      [listing(['x'.repeat(100_000)]), /gets no token: who gives it answered with more than a token can be/],
    ] as const) {
      script = answered;
      await onlyWrong(context, entra('"${ONE_KEY}"'), expected);
    }
    tokenScript = { body: '{"access_token":"t-1","expires_in":60}' };
    context.after(() => (tokenScript = null));
    script = refusing(401, 'no');
    await onlyWrong(
      context,
      entra('"${ONE_KEY}"'),
      /does not accept the key: it was asked with a token, so the account/,
    );
    script = listing(['gpt-one']);
    assert.equal((await examine(context, entra('"${ONE_KEY}"'))).code, 0);
    assert.equal(upstream.requests.at(-1)?.header('authorization'), 'Bearer t-1');
    const aws = '{ kind: aws, region: eu-west-1, access_key_id: AKIA1, secret_access_key: "${ONE_KEY}" }';
    const bedrock = file(upstream.url).replace('api_key: "${ONE_KEY}"', `token: ${aws}`);
    script = refusing(401, 'no');
    await onlyWrong(context, bedrock, /does not accept the key: see ONE_KEY in .*, and the clock of this machine$/);
  });

  test('the price: missing is wrong where somebody is billed', async (context) => {
    script = listing(['gpt-one']);
    await onlyWrong(
      context,
      file(upstream.url, { price: '', billing: 'prepaid' }),
      /no price at provider "one": requests of billed/,
    );
    const { printed, code } = await examine(context, file(upstream.url, { price: '' }));
    assert.equal(code, 0);
    assert.match(printed, /^note {3}model "m" has no price/m);
  });

  test('the clock: ten minutes behind, and an hour ahead', async (context) => {
    for (const [offsetMs, expected] of [
      [600_000, /this machine is \d+ seconds behind that of the providers/],
      [-3_600_000, /this machine is 3\d\d\d seconds ahead of that of the providers/],
    ] as const) {
      script = {
        headers: [
          ['content-type', 'application/json'],
          ['date', new Date(Date.now() + offsetMs).toUTCString()],
        ],
        body: '{"data":[{"id":"gpt-one"}]}',
      };
      await onlyWrong(context, file(upstream.url), expected);
    }
  });

  test('no answer: nobody listens, a name that is not known, a connection that is closed', async (context) => {
    await onlyWrong(
      context,
      file(`http://127.0.0.1:${await findFreePort()}`),
      /does not listen at its address \(ECONNREFUSED\)/,
    );
    await onlyWrong(context, file('http://unknown.invalid'), /ENOTFOUND|EAI_AGAIN/);
    script = { instead: 'close' };
    await onlyWrong(context, file(upstream.url), /ended the connection without an answer/);
  });

  test('TLS: a certificate that is not trusted, and a server that speaks none', async (context) => {
    const read = (name: string) => readFileSync(fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url)));
    const tls = { cert: read('localhost-certificate'), key: read('localhost-key') };
    const secret = await startRawProvider(() => undefined, tls);
    context.after(() => secret.close());
    await onlyWrong(context, file(`https://localhost:${secret.port}`), /not trusted .*see tls\.ca/);
    await onlyWrong(context, file(upstream.url.replace('http://', 'https://')), /WRONG {2}provider "one"/);
  });

  test('the proxy: named without its password, and doubted where it does not answer', async (context) => {
    const closed = await findFreePort();
    await onlyWrong(
      context,
      file('http://llm.acme.test'),
      /through the proxy http:\/\/127\.0\.0\.1:\d+\).*is the proxy right/,
      {
        HTTP_PROXY: `http://user:sk-secret@127.0.0.1:${closed}`,
      },
    );
  });

  test('the proxy: not doubted where an answer came through it', async (context) => {
    const proxy = await startRawProvider((socket, request) => {
      const redirect = 'HTTP/1.1 302 Found\r\nlocation: https://elsewhere.test/\r\ncontent-length: 0\r\n\r\n';
      socket.write(request.startsWith('CONNECT ') ? 'HTTP/1.1 200 Connected\r\n\r\n' : redirect);
    });
    context.after(() => proxy.close());
    await onlyWrong(
      context,
      file('http://llm.acme.test'),
      /through the proxy .*\) redirects elsewhere \(302\): base_url is not that of its API$/,
      { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` },
    );
  });

  test('variables that are not set, and mistakes of the file, are each named', async (context) => {
    const { wrong, printed } = await examine(context, file(upstream.url), { ONE_KEY: '' });
    assert.equal(wrong.length, 1);
    assert.match(printed, /tollgate\.yaml:2: the environment variable ONE_KEY is not set/);
    assert.match(printed, /^note {3}provider "one" is not called: it needs ONE_KEY/m);
    script = listing(['gpt-one']);
    await onlyWrong(context, file(upstream.url, { more: ', colour: red' }), /cannot be used:/);
    await onlyWrong(context, 'providers: [', /cannot be used:/);
    await onlyWrong(context, '', /cannot be used:/);
  });

  test('a file that is not there, and settings that are wrong', async (context) => {
    assert.match((await examine(context, null)).wrong.join(), /cannot read the configuration file .*ENOENT/);
    const { wrong } = await examine(context, '', { PORT: 'abc', BRAND: '1' });
    assert.match(wrong.join('\n'), /^WRONG {2}setting PORT: .*\nWRONG {2}setting BRAND: /);
  });

  test('the front: named, whichever it is', async (context) => {
    const { printed } = await examine(context, null, { HTTP_FRONT: 'node' });
    assert.match(printed, /^ok +node:http reads requests \(HTTP_FRONT node\)$/m);
    const { wrong } = await examine(context, null, { HTTP_FRONT: 'nginx' });
    assert.match(wrong.join(), /setting HTTP_FRONT: .*must be uws, node or auto/);
  });

  test('whether the kernel keeps connections when a gateway is replaced, where it can', async (context) => {
    const place = '/proc/sys/net/ipv4/tcp_migrate_req';
    const set = existsSync(place) ? readFileSync(place, 'utf8').trim() : null;
    const { printed } = await examine(context, null);
    const [said] = printed.split('\n').filter((line) => line.includes('tcp_migrate_req'));
    if (set === null) assert.equal(said, undefined);
    else if (set === '1')
      assert.match(said ?? '', /^ok {5}net\.ipv4\.tcp_migrate_req is 1: .* hardly ever resets a connection/);
    else
      assert.match(
        said ?? '',
        /^note {3}net\.ipv4\.tcp_migrate_req is 0: .* resets connections .*; 1 keeps nearly all$/,
      );
  });

  test('the machine: ports that are taken, a directory that cannot be, databases that are away', async (context) => {
    script = listing(['gpt-one']);
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    context.after(() => server.close());
    const taken = String((server.address() as { port: number }).port);
    await onlyWrong(context, file(upstream.url), /PORT: port \d+ on 127\.0\.0\.1 is in use by another program/, {
      PORT: taken,
    });
    await onlyWrong(context, file(upstream.url), /ADMIN_PORT: port \d+/, { ADMIN_PORT: taken });
    await onlyWrong(context, file(upstream.url), /nothing can listen on 192\.0\.2\.1/, { HOST: '192.0.2.1' });
    await onlyWrong(context, file(upstream.url), /DATA_DIR: \/dev\/null\/x cannot be used \(ENOTDIR\): .* is a file$/, {
      DATA_DIR: '/dev/null/x',
    });
    await onlyWrong(context, file(upstream.url), /DATA_DIR: \/dev\/null is no directory$/, { DATA_DIR: '/dev/null' });
    const link = join(temporaryDirectory(context), 'data');
    symlinkSync('/nowhere/data', link);
    await onlyWrong(context, file(upstream.url), /DATA_DIR: .* is a symbolic link to \/nowhere\/data, which does not/, {
      DATA_DIR: join(link, 'below'),
    });
    const closed = await findFreePort();
    await onlyWrong(context, file(upstream.url), /DATABASE_URL: the database cannot be reached: .*ECONNREFUSED/, {
      ...SECRETS,
      DATABASE_URL: `postgres://127.0.0.1:${closed}/x`,
    });
    await onlyWrong(context, file(upstream.url), /CLICKHOUSE_URL: ClickHouse cannot be asked: .*ECONNREFUSED/, {
      CLICKHOUSE_URL: `http://127.0.0.1:${closed}`,
    });
  });
});
