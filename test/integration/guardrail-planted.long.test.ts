// A value that guardrails look for is nowhere afterwards. Secrets and people's data are planted in every text of every
// API, in replies, in what fails, is tried or cut, under every action and by an external detector; then every table,
// file of the data directory, metric, log and the memory of jobs is searched for them, in every encoding.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { queryFacts } from '../support/facts-view.ts';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { filesBelow } from '../support/files-below.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { MODELS_OF_KINDS } from '../support/generation-routes.ts';
import { emptyReply, TEXT_PLACES, TEXT_REPLIES } from '../support/guardrail-places.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN } from '../support/identity-world.ts';
import { findInMemory } from '../support/process-memory.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const random = (): string => randomBytes(8).toString('hex');
/** Sixteen digits that are a card's. */
function cardNumber(): string {
  const digits = `4${(BigInt(`0x${randomBytes(7).toString('hex')}`) + 10n ** 16n).toString().slice(-14)}`;
  const sum = Array.from(digits, Number).reduce((total, digit, at) => {
    const doubled = at % 2 === 0 ? digit * 2 : digit;
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return `${digits}${(10 - (sum % 10)) % 10}`;
}

const PASSWORD = `pw${random()}`;
const NAME = `Planted${random()}`;
/** By what is done about them, with what a search looks for. */
const PLANTED = {
  block: { value: `postgres://ada:${PASSWORD}@db.internal/orders`, needle: PASSWORD },
  mask: { value: cardNumber(), needle: '' },
  cloak: { value: `ada.${random()}@planted-domain.example`, needle: '' },
  flag: {
    value: `+49 30 901${String(Number.parseInt(random().slice(0, 6), 16))
      .padStart(8, '0')
      .slice(0, 5)}`,
    needle: '',
  },
  external: { value: NAME, needle: NAME },
} as const;
const VALUES = Object.values(PLANTED).map(({ value }) => value);
const NEEDLES: readonly string[] = Object.values(PLANTED).flatMap(({ value, needle }) => {
  const text = needle === '' ? value : needle;
  const bytes = Buffer.from(text);
  // Base64 depends on where the value begins: what is in the middle of it is the same in one of three.
  const encoded = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift, 'x'), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  return [text, bytes.toString('hex'), ...encoded];
});

function assertClean(where: string, text: string): void {
  for (const needle of NEEDLES) {
    const at = text.indexOf(needle);
    assert.equal(at, -1, `${where} has ${needle}: …${text.slice(Math.max(0, at - 80), at)}‹here›`);
  }
}

const guardrails = (detectorUrl: string): string => `guardrails:
  - name: main
    rules:
      - { id: doors, detect: [url_password], stage: both, action: block }
      - { id: cards, detect: [card], stage: both, action: mask }
      - { id: people, detect: [email], stage: input, action: cloak }
      - { id: phones, detect: [phone], stage: both, action: flag }
      - { id: names, external: ner, entities: [PERSON], stage: both, action: mask }
    external: { ner: { shape: webhook, url: "${detectorUrl}" } }
`;

let detector: Server;
let upstream: FakeUpstream;
let tollgate: Tollgate;
let database: pg.Client;
let reply: (body: string) => Script = () => emptyReply('');
const found = { detected: 0 };

before(async () => {
  detector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { texts } = JSON.parse(Buffer.concat(chunks).toString()) as { texts: string[] };
      const findings = texts.flatMap((text, index) => {
        const start = text.indexOf(NAME);
        return start === -1 ? [] : [{ text: index, start, end: start + NAME.length, entity: 'PERSON', score: 0.9 }];
      });
      found.detected += findings.length;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ findings }));
    });
  });
  await new Promise<void>((resolve) => detector.listen(0, '127.0.0.1', resolve));
  upstream = await startFakeUpstream(({ body }) => reply(body.toString()));
  const yaml = testConfiguration({ upstreamUrl: upstream.url, models: MODELS_OF_KINDS });
  const guarded = yaml.replace('  - slug: acme\n', '  - slug: acme\n    guardrails: { policy: main }\n');
  const detectorUrl = `http://127.0.0.1:${(detector.address() as AddressInfo).port}/`;
  tollgate = await startTollgate({
    configurationYaml: `${guardrails(detectorUrl)}${guarded}`,
    env: { ADMIN_TOKEN, LOG_LEVEL: 'trace' },
  });
  database = new pg.Client(tollgate.postgresUrl);
  await database.connect();
});
after(async () => {
  await database?.end();
  await tollgate?.stop();
  if (tollgate !== undefined) removeInstallation(tollgate.dataDir);
  await upstream?.close();
  detector?.closeAllConnections();
  detector?.close();
});

async function ask(path: string, body: unknown, key: string = KEYS.acme): Promise<HttpAnswer> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return httpCall(`${tollgate.url}${path}`, {
    headers: { ...headers, 'anthropic-version': '2023-06-01' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    isOffFormat: true,
  });
}

describe('planted values are nowhere', () => {
  test('after every text of every API had them', async () => {
    for (const { path, body } of TEXT_PLACES) {
      reply = () => emptyReply(path);
      const statuses: number[] = [];
      for (const value of VALUES) statuses.push((await ask(path, body(`about ${value} now`))).status);
      assert.deepEqual(statuses, [400, 200, 200, 200, 200], path);
    }
    const external = upstream.requests.filter(({ body }) => body.includes('[PERSON]'));
    assert.ok(external.length >= TEXT_PLACES.length, String(external.length));
    assert.ok(!upstream.requests.some(({ body }) => body.includes(NAME) || body.includes(PASSWORD)));
  });

  test('after replies had them, whole and streamed', async () => {
    for (const { request, path, reply: replyOf } of TEXT_REPLIES)
      for (const value of VALUES) {
        reply = () => replyOf(`about ${value} now`);
        const { body } = await ask(path, request(`hi from ${PLANTED.cloak.value}`));
        assert.ok(!body.includes(PASSWORD) && !body.includes(PLANTED.mask.value));
      }
  });

  test('after requests that fail, are too large for the event loop, are no JSON, or are only tried', async () => {
    const all = VALUES.slice(1).join(' and ');
    const chat = TEXT_REPLIES[0];
    assert.ok(chat !== undefined);
    for (const status of [400, 401, 429, 500, 529]) {
      // A provider that says back what it was sent.
      reply = (sent) => ({
        status,
        headers: [['content-type', 'application/json']],
        body: JSON.stringify({ error: { message: `${sent} ${all}` } }),
      });
      await ask(chat.path, chat.request(all));
    }
    reply = () => ({ ...chat.reply(all), fault: { kind: 'reset', afterBytes: 40 } });
    await ask(chat.path, chat.request(all)).catch(() => null);
    reply = () => chat.reply(`${'a word, '.repeat(20_000)}${all}`);
    for (const text of [all, VALUES.join()]) await ask(chat.path, chat.request(`${'a word, '.repeat(20_000)}${text}`));
    await ask(chat.path, `{"model":"sim/small","messages":[{"role":"user","content":"${VALUES.join()}`);
    await ask(chat.path, { model: 'sim/small', messages: VALUES });
    await ask(chat.path, chat.request(all), VALUES[0]);
    await ask(`${chat.path}?q=${encodeURIComponent(all)}`, chat.request(all));
    const tried = await ask('/v1/admin/guardrails/test', { text: VALUES.join(' '), policy: 'main' }, ADMIN_TOKEN);
    assert.equal(tried.status, 200, tried.body.toString());
    assert.equal((JSON.parse(tried.body.toString()) as { data: { findings: unknown[] } }).data.findings.length, 4);
    assertClean('the answer of a test', tried.body.toString());
    assert.ok(found.detected > 0);
  });

  test('logs, metrics, the memory of jobs, Postgres', async (context) => {
    await waitFor(
      'all to be posted',
      async () => (await database.query(`SELECT 1 FROM generations WHERE outcome IS NULL`)).rows.length,
      (open) => open === 0,
    );
    assertClean('the log', tollgate.output());
    assertClean('/metrics', (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString('latin1'));
    const tables = await database.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    let rows = 0;
    for (const { name } of tables.rows) {
      const read = await database.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} t`);
      rows += read.rows.length;
      for (const { row } of read.rows) assertClean(`table ${name}`, row);
    }
    assert.ok(rows > TEXT_PLACES.length * VALUES.length, String(rows));
    const control = 'src/main.ts';
    const values = [PASSWORD, NAME, PLANTED.mask.value, PLANTED.cloak.value, PLANTED.flag.value];
    const inMemory = findInMemory(tollgate.jobsPid(), [control, ...values]);
    if (inMemory === null) context.diagnostic('this system does not let a test read the memory of another process');
    else assert.deepEqual([...inMemory], [control]);
  });

  test('the spool, ClickHouse, and all else in the data directory', async () => {
    const search = (): number => {
      let files = 0;
      for (const { path, content } of filesBelow(tollgate.dataDir)) {
        files += 1;
        assertClean(path, content);
      }
      return files;
    };
    assert.ok(search() > 10);
    await tollgate.stop({ keepData: true });
    assertClean('the log at the end', tollgate.output());
    const tables = await queryFacts<{ name: string }>(
      tollgate.dataDir,
      `SELECT database || '.' || name AS name FROM system.tables
        WHERE database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA') AND engine NOT LIKE '%View'`,
    );
    let rows = 0;
    for (const { name } of tables)
      for (const row of await queryFacts<Readonly<Record<string, unknown>>>(
        tollgate.dataDir,
        `SELECT * FROM ${name}`,
      )) {
        rows += 1;
        assertClean(`table ${name} of ClickHouse`, JSON.stringify(row));
      }
    assert.ok(rows > TEXT_PLACES.length, String(rows));
    search();
  });

  test('they are found where they are', () => {
    for (const text of [NAME, Buffer.from(PASSWORD).toString('hex'), Buffer.from(`ab${NAME}`).toString('base64')])
      assert.throws(() => assertClean('here', `before ${text} after`));
    assert.ok(upstream.requests.some(({ body }) => body.includes(PLANTED.flag.value)));
  });
});
