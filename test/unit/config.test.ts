// The settings: defaults, what is refused and in which words, and that secrets are never repeated.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { describe, test } from 'node:test';
import { ConfigFault, DIALECT_ROUTES, type Environment, localUrl, readConfig } from '../../src/config.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

function refusedLines(environment: Environment): readonly string[] {
  try {
    readConfig(environment, '/somewhere');
  } catch (error) {
    assert.ok(error instanceof ConfigFault);
    return error.lines;
  }
  return assert.fail('the settings were accepted');
}

describe('settings', () => {
  test('origins for CORS are a star, or origins as browsers send them', () => {
    const of = (value: string) => readConfig({ CORS_ORIGINS: value }, '/somewhere').corsOrigins;
    assert.equal(of('*'), '*');
    assert.deepEqual(
      of('https://app.example, http://localhost:3000'),
      new Set(['https://app.example', 'http://localhost:3000']),
    );
    for (const wrong of [
      'app.example',
      'https://app.example/',
      'https://app.example/x',
      'HTTPS://app.example',
      '*,https://a.example',
      'null',
      'https://a.example:443',
      'https://*.example',
    ])
      assert.match(refusedLines({ CORS_ORIGINS: wrong })[0] ?? '', /^CORS_ORIGINS: must be "\*", or origins such as/);
  });

  test('nothing given: the defaults, frozen', () => {
    const config = readConfig({}, '/somewhere');
    assert.deepEqual(
      { ...config },
      {
        host: '127.0.0.1',
        httpFront: 'auto',
        port: 8080,
        adminHost: '127.0.0.1',
        adminPort: 8081,
        gatewayProcesses: availableParallelism(),
        workerThreads: 1,
        dataDirectory: '/somewhere/.tollgate',
        databaseUrl: null,
        clickhouseUrl: null,
        brand: 'Service',
        publicUrl: 'http://127.0.0.1:8080',
        masterKey: null,
        previousMasterKeys: [],
        masterKeySource: null,
        adminToken: null,
        delegationKey: null,
        bodyLimitBytes: 33_554_432,
        bodyMemoryBytes: 536_870_912,
        bodyTimeoutSeconds: 600,
        connectionsMax: 16_384,
        connectionsPerAddress: 2_048,
        console: true,
        corsOrigins: null,
        upstreamClient: 'own',
        proxies: { https: null, http: null, none: '' },
        trustedAddresses: ['127.0.0.0/8', '::1'],
        drainSeconds: 30,
        spoolReserveBytes: 67_108_864,
        changesPerMinute: 60,
        webhookAllowHttp: false,
        webhookAllowPrivate: false,
        egressAllow: [],
        reportsListen: null,
        reportsUrl: null,
        factsRetentionDays: null,
        observing: { accessLog: false, traces: null },
        media: {
          storage: 'disk',
          retrieval: 'bytes',
          publicUrl: null,
          retentionDays: null,
          limits: { fileBytesMax: 26_214_400, organizationBytesMax: 10_737_418_240 },
        },
        dialectRefusals: new Set(),
        signInFile: null,
        logLevel: 'info',
        configurationFile: null,
        given: new Set(),
      },
    );
    assert.ok(Object.isFrozen(config));
  });

  test('a switch is true or false, and nothing else', () => {
    const config = readConfig({ WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOW_PRIVATE: 'false', SPOOL_RESERVE_BYTES: '0' });
    assert.deepEqual([config.webhookAllowHttp, config.webhookAllowPrivate, config.spoolReserveBytes], [true, false, 0]);
    assert.deepEqual(refusedLines({ WEBHOOK_ALLOW_HTTP: 'yes', SPOOL_RESERVE_BYTES: '-1' }), [
      'SPOOL_RESERVE_BYTES: must be an integer from 0 to 1099511627776, got "-1"',
      'WEBHOOK_ALLOW_HTTP: must be true or false, got "yes"',
    ]);
  });

  test('uploaded files have a place by themselves only where the database is this machine’s own', () => {
    const elsewhere = { DATABASE_URL: 'postgres://db.test/x', MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
    assert.equal(readConfig(elsewhere).media, null);
    assert.equal(readConfig({ ...elsewhere, MEDIA: 'disk' }).media?.storage, 'disk');
    assert.equal(readConfig({ MEDIA: 'off' }).media, null);
    assert.deepEqual(refusedLines({ MEDIA: 'tape' }), ['MEDIA: must be off, disk or s3, got "tape"']);
    assert.equal(refusedLines({ MEDIA: 's3' }).length, 3);
    assert.deepEqual(refusedLines({ MEDIA_RETRIEVAL: 'url' }).length, 1);
    const bucket = { MEDIA_BUCKET_URL: 'https://s3.test/b/p/', MEDIA_BUCKET_KEY_ID: 'k', MEDIA_BUCKET_SECRET: 's' };
    assert.deepEqual(readConfig({ MEDIA: 's3', ...bucket }).media?.storage, {
      url: 'https://s3.test/b/p',
      region: 'us-east-1',
      keyId: 'k',
      secret: 's',
    });
    assert.deepEqual(refusedLines({ MEDIA_FILE_BYTES_MAX: '1000', MEDIA_ORGANIZATION_BYTES_MAX: '999' }), [
      'MEDIA_FILE_BYTES_MAX: must be at most MEDIA_ORGANIZATION_BYTES_MAX, 999, got "1000"',
    ]);
  });

  test('memory for bodies has room for the largest twice, and trusted addresses are addresses or networks', () => {
    assert.equal(readConfig({ BODY_LIMIT_BYTES: '1073741824' }).bodyMemoryBytes, 2_147_483_648);
    assert.deepEqual(readConfig({ TRUSTED_ADDRESSES: 'none' }).trustedAddresses, []);
    assert.deepEqual(readConfig({ TRUSTED_ADDRESSES: '10.0.0.0/8, fd00::/8,192.0.2.1' }).trustedAddresses, [
      '10.0.0.0/8',
      'fd00::/8',
      '192.0.2.1',
    ]);
    assert.deepEqual(refusedLines({ BODY_MEMORY_BYTES: '1048576' }), [
      'BODY_MEMORY_BYTES: must be at least twice BODY_LIMIT_BYTES, 67108864, got "1048576"',
    ]);
    for (const wrong of ['10.0.0.0/33', '10.0.0/8', '::1/129', 'localhost', '10.0.0.1/8/8', '1.2.3.4,']) {
      assert.deepEqual(refusedLines({ TRUSTED_ADDRESSES: wrong }), [
        `TRUSTED_ADDRESSES: must be "none", or IP addresses and networks such as 10.0.0.0/8, with commas ` +
          `between, got "${wrong}"`,
      ]);
    }
  });

  test('an empty value is no value', () => {
    const config = readConfig({ PORT: '', MASTER_KEY: '', BRAND: '', DATA_DIR: '' }, '/somewhere');
    assert.equal(config.port, 8080);
    assert.equal(config.given.size, 0);
  });

  test('given values', () => {
    const config = readConfig(
      {
        HOST: '0.0.0.0',
        PORT: '9000',
        ADMIN_PORT: '9001',
        GATEWAY_PROCESSES: '3',
        WORKER_THREADS: '2',
        DATA_DIR: 'data',
        DATABASE_URL: 'postgres://u:p@/tollgate?host=%2Frun',
        CLICKHOUSE_URL: 'http://127.0.0.1:8123',
        BRAND: 'Acme',
        PUBLIC_URL: 'https://gate.acme.test/',
        MASTER_KEY: KEY,
        ADMIN_TOKEN: 'a'.repeat(16),
        DELEGATION_KEY: 'd'.repeat(32),
        BODY_LIMIT_BYTES: '1024',
        DRAIN_SECONDS: '0',
        DIALECT_REFUSALS: 'messages, chat_completions',
        LOG_LEVEL: 'debug',
        TOLLGATE_CONFIG: 'tollgate.yaml',
        UNRELATED: 'x',
      },
      '/somewhere',
    );
    assert.equal(config.port, 9000);
    assert.equal(config.dataDirectory, '/somewhere/data');
    assert.equal(config.configurationFile, '/somewhere/tollgate.yaml');
    assert.equal(config.publicUrl, 'https://gate.acme.test');
    assert.deepEqual(config.masterKey, Buffer.alloc(32, 7));
    assert.equal(config.drainSeconds, 0);
    assert.deepEqual(config.dialectRefusals, new Set(['messages', 'chat_completions']));
    assert.ok(config.given.has('PORT') && !config.given.has('UNRELATED'));
  });

  test('every wrong setting is named, with what it must be and what it was', () => {
    assert.deepEqual(
      refusedLines({
        PORT: 'abc',
        ADMIN_PORT: '70000',
        BRAND: '1st',
        LOG_LEVEL: 'loud',
        GATEWAY_PROCESSES: '0',
        HOST: 'a b',
        PUBLIC_URL: 'ftp://x',
        DRAIN_SECONDS: '-1',
        DIALECT_REFUSALS: 'messages,systemone',
      }),
      [
        'HOST: must be an IP address or a host name, got "a b"',
        'PORT: must be an integer from 1 to 65535, got "abc"',
        'ADMIN_PORT: must be an integer from 1 to 65535, got "70000"',
        'GATEWAY_PROCESSES: must be an integer from 1 to 256, got "0"',
        'BRAND: must be 1 to 32 letters, digits or hyphens, the first a letter, got "1st"',
        'PUBLIC_URL: must be a URL starting with http:// or https://, got "ftp://x"',
        'DRAIN_SECONDS: must be an integer from 0 to 3600, got "-1"',
        `DIALECT_REFUSALS: must be "all" or some of ${DIALECT_ROUTES.join(',')}, ` +
          'with commas between, got "messages,systemone"',
        'LOG_LEVEL: must be one of fatal, error, warn, info, debug, trace, silent, got "loud"',
      ],
    );
  });

  test('all dialects are named by one word', () => {
    assert.deepEqual(readConfig({ DIALECT_REFUSALS: 'all' }).dialectRefusals, new Set(DIALECT_ROUTES));
  });

  const PORTS_REFUSED = ['0', '65536', '80.5', '1e3', ' 80', '0x50', '-1', '99999999999999999999'];
  for (const port of PORTS_REFUSED) {
    test(`PORT ${JSON.stringify(port)} is refused`, () => {
      assert.deepEqual(refusedLines({ PORT: port }), [
        `PORT: must be an integer from 1 to 65535, got ${JSON.stringify(port)}`,
      ]);
    });
  }

  test('a wrong secret is named and not repeated', () => {
    const secret = 'hunter2-hunter2';
    const lines = refusedLines({
      MASTER_KEY: secret,
      ADMIN_TOKEN: 'hunter2',
      DELEGATION_KEY: secret,
      DATABASE_URL: `mysql://root:${secret}@x`,
      CLICKHOUSE_URL: secret,
    });
    assert.equal(lines.length, 5);
    assert.ok(!lines.join('\n').includes('hunter2'));
    assert.match(lines.join('\n'), /^MASTER_KEY: must be 32 bytes in base64/m);
  });

  test('a shared database needs a shared master key', () => {
    const lines = refusedLines({ DATABASE_URL: 'postgres://db/tollgate' });
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /^MASTER_KEY: must be given when DATABASE_URL is/);
    assert.equal(
      readConfig({ DATABASE_URL: 'postgres://db/tollgate', MASTER_KEY: KEY }).databaseUrl,
      'postgres://db/tollgate',
    );
  });

  test('one port cannot serve both', () => {
    assert.deepEqual(refusedLines({ PORT: '9000', ADMIN_PORT: '9000' }), [
      'ADMIN_PORT: must differ from PORT, got "9000" for both',
    ]);
  });

  test('a wildcard host is shown as loopback', () => {
    assert.equal(localUrl('0.0.0.0', 1), 'http://127.0.0.1:1');
    assert.equal(localUrl('::', 1), 'http://[::1]:1');
    assert.equal(localUrl('::1', 1), 'http://[::1]:1');
    assert.equal(localUrl('gate.test', 1), 'http://gate.test:1');
  });
});

test('a collector of traces is named as OpenTelemetry names it', () => {
  const { observing } = readConfig({
    ACCESS_LOG: 'on',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.test/otlp/',
    OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20one, x-tenant = two',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  });
  assert.deepEqual(observing, {
    accessLog: true,
    traces: {
      url: 'https://collector.test/otlp/v1/traces',
      headers: { authorization: 'Bearer one', 'x-tenant': 'two' },
      serviceName: 'tollgate',
      ratio: 0.25,
    },
  });
  for (const wrong of [
    { OTEL_EXPORTER_OTLP_HEADERS: 'one' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'one=%zz' },
    { OTEL_EXPORTER_OTLP_HEADERS: 'one=two%0d%0athree' },
    { OTEL_TRACES_SAMPLER_ARG: '1.5' },
    { OTEL_TRACES_SAMPLER_ARG: '-1' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    { ACCESS_LOG: 'yes' },
  ])
    assert.throws(() => readConfig(wrong), ConfigFault);
});
