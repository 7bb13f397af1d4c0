// Real programs on the way to a provider: squid as a proxy that wants credentials, tinyproxy as one without, and nginx
// as a provider that speaks HTTP/2 and asks for a certificate. A program that is not on this machine is skipped with a
// word.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { PROVIDERS_CERTIFICATE, type ProviderDoubles, startProviderDoubles } from '../support/provider-doubles.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const LOCAL_CERTIFICATE = fileURLToPath(new URL('../support/tls/localhost-certificate.pem', import.meta.url));
const LOCAL_KEY = fileURLToPath(new URL('../support/tls/localhost-key.pem', import.meta.url));
const SQUID_AUTHENTICATOR = '/usr/lib/squid/basic_ncsa_auth';
const PASSWORD = 'secret-of-the-proxy';
const PASSWORD_HASH = '$apr1$doubles1$mpXauXrttwY7ZEHi0ILiv/';

const isThere = (command: string, argument: string): boolean => spawnSync(command, [argument]).error === undefined;
const needs = (command: string, there: boolean): { readonly skip?: string } =>
  there ? {} : { skip: `${command} is not on this machine` };
const WITH_SQUID = needs('squid', isThere('squid', '-v') && existsSync(SQUID_AUTHENTICATOR));
const WITH_TINYPROXY = needs('tinyproxy', isThere('tinyproxy', '-v'));
const WITH_NGINX = needs('nginx', isThere('nginx', '-v'));

describe('real programs on the way to a provider', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-proxies-'));
  const programs: ChildProcess[] = [];
  let doubles: ProviderDoubles;
  let tollgate: Tollgate;
  let isStopped = false;

  async function run(command: string, args: readonly string[], port: number): Promise<void> {
    const program = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    programs.push(program);
    let said = '';
    program.stderr.on('data', (text: Buffer) => (said += text.toString()));
    await waitFor(
      `${command} to listen`,
      () => listens(port),
      (there) => there,
      20_000,
    ).catch((fault: unknown) => assert.fail(`${String(fault)}: ${said}`));
  }

  async function startSquid(): Promise<number> {
    const port = await findFreePort();
    const file = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const users = file('users', `gateway:${PASSWORD_HASH}\n`);
    const hosts = file('hosts', '127.0.0.1 api.openai.com api.mistral.ai\n');
    const lines = [
      `http_port 127.0.0.1:${port}`,
      'pid_filename none',
      `cache_log ${join(directory, 'cache.log')}`,
      `access_log stdio:${join(directory, 'access.log')}`,
      `coredump_dir ${directory}`,
      `hosts_file ${hosts}`,
      `auth_param basic program ${SQUID_AUTHENTICATOR} ${users}`,
      'acl known proxy_auth REQUIRED',
      'acl closed dstdomain api.mistral.ai',
      'http_access deny closed',
      'http_access allow known',
      'http_access deny all',
      'cache deny all',
      'shutdown_lifetime 0 seconds',
      'visible_hostname doubles',
      'netdb_filename none',
    ];
    await run('squid', ['-N', '-f', file('squid.conf', `${lines.join('\n')}\n`)], port);
    return port;
  }

  async function startTinyproxy(): Promise<number> {
    const port = await findFreePort();
    const path = join(directory, 'tinyproxy.conf');
    writeFileSync(path, `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nConnectPort ${doubles.tlsPort}\n`);
    await run('tinyproxy', ['-d', '-c', path], port);
    return port;
  }

  async function startNginx(): Promise<number> {
    const port = await findFreePort();
    const path = join(directory, 'nginx.conf');
    writeFileSync(
      path,
      `daemon off; master_process off; pid ${join(directory, 'nginx.pid')}; error_log stderr;
events {}
http {
  log_format seen '$server_protocol $ssl_client_s_dn $uri';
  access_log ${join(directory, 'nginx.log')} seen;
  client_body_temp_path ${directory}/b; proxy_temp_path ${directory}/p; fastcgi_temp_path ${directory}/f;
  uwsgi_temp_path ${directory}/u; scgi_temp_path ${directory}/s;
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${LOCAL_CERTIFICATE}; ssl_certificate_key ${LOCAL_KEY};
    ssl_client_certificate ${LOCAL_CERTIFICATE}; ssl_verify_client on;
    location / { proxy_pass ${doubles.url}/as/openai/; proxy_buffering off; proxy_http_version 1.1; }
  }
}
`,
    );
    await run('nginx', ['-p', directory, '-c', path], port);
    return port;
  }

  before(async () => {
    chmodSync(directory, 0o777);
    doubles = await startProviderDoubles();
    const squid = WITH_SQUID.skip === undefined ? await startSquid() : 9;
    const tinyproxy = WITH_TINYPROXY.skip === undefined ? await startTinyproxy() : 9;
    const nginx = WITH_NGINX.skip === undefined ? await startNginx() : 9;
    const { tlsPort } = doubles;
    const openai = `https://api.openai.com:${tlsPort}/v1`;
    const own = { ca: LOCAL_CERTIFICATE, cert: LOCAL_CERTIFICATE, key: LOCAL_KEY };
    const providers = {
      squid: { base_url: openai },
      'squid-nobody': { base_url: openai, proxy: `http://127.0.0.1:${squid}` },
      'squid-closed': { base_url: `https://api.mistral.ai:${tlsPort}/v1` },
      tinyproxy: { base_url: `https://localhost:${tlsPort}/v1`, proxy: `http://127.0.0.1:${tinyproxy}` },
      'tinyproxy-refuses': { base_url: 'https://localhost:9/v1', proxy: `http://127.0.0.1:${tinyproxy}` },
      'nginx-1': { base_url: `https://localhost:${nginx}/v1`, tls: own },
      'nginx-2': { base_url: `https://localhost:${nginx}/v1`, tls: own, http: 2 },
    };
    tollgate = await startTollgate({
      configurationYaml: configurationOf(providers),
      clickhouse: 'away',
      env: {
        HTTPS_PROXY: `http://gateway:${PASSWORD}@127.0.0.1:${squid}`,
        NODE_EXTRA_CA_CERTS: PROVIDERS_CERTIFICATE,
      },
    });
  });
  async function stopTollgate(): Promise<void> {
    if (!isStopped) await tollgate?.stop();
    isStopped = true;
  }
  after(async () => {
    await stopTollgate();
    await doubles?.stop();
    for (const program of programs) {
      const ended = new Promise((resolve) => program.once('close', resolve));
      if (program.exitCode === null) program.kill('SIGTERM');
      await ended;
    }
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = (provider: string, stream = false): Promise<HttpAnswer> =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: `m/${provider}`,
        messages: [{ role: 'user', content: 'Hello [[sim: tokens=20]]' }],
        max_tokens: 50,
        stream,
      }),
    });

  async function assertServed(provider: string): Promise<void> {
    for (const stream of [false, true]) {
      const answer = await ask(provider, stream);
      assert.equal(answer.status, 200, answer.body.toString());
      assert.ok(answer.complete);
      assert.ok(answer.body.equals(doubles.exchanges.at(-1)?.reply ?? Buffer.alloc(0)));
      assert.equal(doubles.exchanges.at(-1)?.headers['authorization'], 'Bearer sk-real');
      assert.equal(doubles.exchanges.at(-1)?.headers['proxy-authorization'], undefined);
    }
  }

  async function assertRefused(provider: string): Promise<void> {
    const before = doubles.exchanges.length;
    const answer = await ask(provider);
    assert.equal(answer.status, 502, answer.body.toString());
    assert.equal(doubles.exchanges.length, before);
    assert.doesNotMatch(answer.body.toString(), /squid|tinyproxy|proxy/i);
  }

  test('squid, with the credentials of HTTPS_PROXY', WITH_SQUID, () => assertServed('squid'));
  test('squid, without credentials: nobody is reached, and no other way is tried', WITH_SQUID, () =>
    assertRefused('squid-nobody'),
  );
  test('squid, where it lets nobody through', WITH_SQUID, () => assertRefused('squid-closed'));
  test('tinyproxy', WITH_TINYPROXY, () => assertServed('tinyproxy'));
  test('tinyproxy, to a port that it refuses', WITH_TINYPROXY, () => assertRefused('tinyproxy-refuses'));
  for (const [provider, version] of [
    ['nginx-1', 'HTTP/1.1'],
    ['nginx-2', 'HTTP/2.0'],
  ] as const)
    test(`nginx over ${version}, which asks for a certificate`, WITH_NGINX, async () => {
      await assertServed(provider);
      const last = readFileSync(join(directory, 'nginx.log'), 'utf8').trim().split('\n').at(-1);
      assert.equal(last, `${version} CN=localhost /v1/chat/completions`);
    });
  test('the password of the proxy is nowhere in what the installation printed', () =>
    assert.ok(!tollgate.output().includes(PASSWORD)));

  // A tunnel is a line of the log once it is closed, so this is the last test.
  test('squid saw where a call went, and nothing of it', WITH_SQUID, async () => {
    await stopTollgate();
    const log = await waitFor(
      'the tunnel to be logged',
      () => readFileSync(join(directory, 'access.log'), 'utf8'),
      (text) => text.includes('TCP_TUNNEL/200'),
    );
    assert.match(log, /TCP_TUNNEL\/200 \d+ CONNECT api\.openai\.com:\d+ gateway /);
    assert.doesNotMatch(log, /chat\/completions|sk-real|secret/);
  });
});

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

function configurationOf(providers: Readonly<Record<string, object>>): string {
  return JSON.stringify({
    providers: Object.entries(providers).map(([id, fields]) => ({ id, api_key: 'sk-real', ...fields })),
    models: Object.keys(providers).map((id) => ({
      id: `m/${id}`,
      context_length: 100_000,
      max_completion_tokens_cap: 1_000,
      served_by: [{ provider: id, model: 'm-1', apis: ['chat_completions'], price: { input: '1', output: '5' } }],
    })),
    organizations: [
      {
        slug: 'acme',
        billing: 'prepaid',
        opening_credit: '1000.00',
        users: [{ email: 'a@acme.test', role: 'owner' }],
        keys: [{ name: 'ci', user: 'a@acme.test', secret: KEYS.acme }],
      },
    ],
  });
}
