// What applying a file says beside doing it: mistakes that are named, and warnings of what users would trip over.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { applyCommand } from '../../src/commands/apply.ts';
import { startTollgate } from '../support/gateway.ts';
import { startTestPostgres, type TestPostgres } from '../support/postgres.ts';

const masterKey = randomBytes(32);
const directory = mkdtempSync(join(tmpdir(), 'tollgate-warnings-'));
const file = join(directory, 'tollgate.yaml');
let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(async () => {
  await server.stop();
  rmSync(directory, { recursive: true });
});

/** The warnings of a file that is applied to an empty database. */
async function warningsOf(text: string, ...options: readonly string[]): Promise<readonly string[]> {
  writeFileSync(file, text);
  const printed: string[] = [];
  const environment = { DATABASE_URL: await server.createDatabase(), MASTER_KEY: masterKey.toString('base64') };
  const context = { environment, print: (line: string) => void printed.push(...line.split('\n')) };
  assert.equal(await applyCommand.run([file, ...options], context), 0);
  return printed.filter((line) => line.startsWith('warning: '));
}

const provider = (url = 'http://p.test') => `providers: [{ id: p, base_url: "${url}", auth: none }]\n`;
const model = (fields: string, kind = 'text', api = 'chat_completions') =>
  `models: [{ id: m, kind: ${kind}, ${fields}served_by: [{ provider: p, model: m, apis: [${api}]`;
const PRICE = ', price: { input: "1", output: "2" } }] }]\n';
const CONTEXT = 'context_length: 1000, ';
const billed = 'organizations: [{ slug: acme, billing: prepaid }]\n';
const unbilled = 'organizations: [{ slug: acme, billing: none }]\n';

describe('warnings', () => {
  const CASES: Readonly<Record<string, readonly [file: string, warning: RegExp | null]>> = {
    'nothing to warn of': [provider() + model(CONTEXT) + PRICE + billed, null],
    'a model without a price, and an organization that is billed': [
      `${provider() + model(CONTEXT)} }] }]\n${billed}`,
      /^warning: model "m" has no price: requests of billed organizations \("acme"\) for it are refused with 422$/,
    ],
    'a model without a price, and nobody who is billed': [`${provider() + model(CONTEXT)} }] }]\n${unbilled}`, null],
    'an inactive model without a price': [`${provider() + model(`active: false, ${CONTEXT}`)} }] }]\n${billed}`, null],
    'one of two providers has no price': [
      provider() +
        model(CONTEXT) +
        PRICE.replace(' }] }]', ' }, { provider: p, model: n, apis: [messages] }] }]') +
        billed,
      /^warning: model "m" has no price at provider "p", which does not serve billed organizations \("acme"\)$/,
    ],
    'a text model without context_length': [
      provider() + model('') + PRICE + unbilled,
      /^warning: model "m" has no context_length: .* refused with 422/,
    ],
    'a model without context_length whose searches have a price': [
      provider() + model('') + PRICE.replace('output: "2"', 'output: "2", calls: { web_search: "0.01" }') + unbilled,
      /^warning: model "m" has no context_length: .*; nothing is held for the tokens of what its calls of tools find/,
    ],
    'an image model without context_length': [
      `${provider() + model('', 'image', 'images')}, price: { image: "0.04" } }] }]\n${billed}`,
      null,
    ],
    'a base_url with a version before its end': [
      provider('https://g.test/v1beta/openai/'),
      /^warning: provider "p" is called at https:\/\/g\.test\/v1beta\/openai\/v1\/chat\/completions and the like/,
    ],
    'a base_url that ends in /v1': [provider('https://a.test/openai/v1/'), null],
  };
  for (const [what, [text, expected]] of Object.entries(CASES)) {
    test(what, async () => {
      const warnings = await warningsOf(text);
      assert.equal(warnings.length, expected === null ? 0 : 1, warnings.join('\n'));
      if (expected !== null) assert.match(warnings[0] ?? '', expected);
    });
  }

  test('a dry run says them too', async () => {
    assert.equal((await warningsOf(provider() + model('') + PRICE, '--dry-run')).length, 1);
  });
});

test('a start says them, as applying does', async () => {
  const tollgate = await startTollgate({
    configurationYaml: provider() + model('') + PRICE + unbilled,
    clickhouse: 'away',
  });
  try {
    assert.match(tollgate.output(), /^warning: model "m" has no context_length/m);
    await tollgate.run(['limit', 'set', '--organization', 'acme', '--kind', 'concurrent_requests', '--limit', '7']);
    writeFileSync(file, provider() + model('') + PRICE + unbilled);
    const { exitCode, output } = await tollgate.run(['apply', file]);
    assert.deepEqual([exitCode, /^warning: model "m"/m.test(output)], [0, true], output);
    const limits = await tollgate.run(['limit', 'list', '--organization', 'acme']);
    assert.match(limits.output, /^concurrent_requests\t7\t/m);
    const standing = await tollgate.run(['limit', 'current', '--organization', 'acme']);
    assert.match(standing.output, /^concurrent_requests\tused 0 of 7, 7 left\tset by platform$/m);
  } finally {
    await tollgate.stop();
  }
});

test('os.environ/NAME is a mistake that is named, with its line and what to write instead', async () => {
  const text = 'providers:\n  - { id: p, base_url: "http://p.test", api_key: os.environ/OPENAI_API_KEY }\n';
  await assert.rejects(
    warningsOf(text),
    /tollgate\.yaml:2: os\.environ\/OPENAI_API_KEY is not read from the environment: write \$\{OPENAI_API_KEY\}$/,
  );
});
