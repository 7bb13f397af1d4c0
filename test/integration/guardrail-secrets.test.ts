// Which secrets of external detectors gateways send, and where to: whoever may change a policy does not get to read
// them, by another address, by a detector that is gone, or by an earlier version.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { isRefused, type Refused } from '../../src/domain/refusals/refused.ts';
import { loadGuardrailTable } from '../../src/storage/postgres/guardrails/guardrail-table.ts';
import { getPolicy, putPolicy, removePolicy } from '../../src/storage/postgres/guardrails/policies.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { secretsOf } from '../support/installation-secrets.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';

const { box } = secretsOf(randomBytes(32));
const ACTOR = { kind: 'cli', userId: null, label: 'test' } as const;
const SECRET = 'sk-detector-canary-42';
const VENDOR = 'https://vendor.test/scan';
const ELSEWHERE = 'https://elsewhere.test/scan';

interface Detector {
  readonly url: string;
  readonly secret?: string;
  readonly shape?: 'webhook' | 'presidio';
}

let server: TestPostgres;
let postgres: Postgres;
let acme: string;
before(async () => {
  server = await startTestPostgres();
});
beforeEach(async () => {
  await postgres?.close();
  postgres = createPostgres({ url: await server.createDatabase(), log: silentLog });
  const { rows } = await postgres.query<{ id: string }>(
    "INSERT INTO organizations (slug, display_name, billing) VALUES ('acme', 'acme', 'none') RETURNING id",
  );
  acme = rows[0]?.id ?? '';
});
after(async () => {
  await postgres?.close();
  await server.stop();
});

function definitionOf(detectors: Readonly<Record<string, Detector>>) {
  const rules = Object.keys(detectors).map((external) => ({
    id: external,
    external,
    stage: 'input' as const,
    action: 'flag' as const,
  }));
  const words = { id: 'words', words: ['falcon'], stage: 'input' as const, action: 'flag' as const };
  const external = Object.fromEntries(
    Object.entries(detectors).map(([name, detector]) => [name, { shape: 'webhook' as const, ...detector }]),
  );
  return { rules: [words, ...rules], external };
}

const put = (organizationId: string | null, detectors: Readonly<Record<string, Detector>>, name = 'names') =>
  putPolicy(postgres, box, ACTOR, { organizationId, name, definition: definitionOf(detectors), version: null });

async function stored(organizationId: string | null, detectors: Readonly<Record<string, Detector>>): Promise<number> {
  const found = await put(organizationId, detectors);
  assert.ok(!isRefused(found), JSON.stringify(found));
  return found.version;
}

const moved = (detector: string): Refused => ({
  refused: 'invalid',
  field: `external.${detector}.secret`,
  reason: 'is needed: the stored one is for another address',
});

/** What gateways send, by detector. */
async function sent(): Promise<Record<string, readonly [url: string, secret: string | null]>> {
  const { policies } = await loadGuardrailTable(postgres, box);
  return Object.fromEntries(
    [...policies.values()].flatMap(({ externals }) => externals.map(({ name, url, secret }) => [name, [url, secret]])),
  );
}

const countSecrets = async () =>
  (await postgres.query<{ count: number }>('SELECT count(*)::integer AS count FROM guardrail_secrets')).rows[0]?.count;

for (const owner of ['platform', 'organization'] as const) {
  const idOf = () => (owner === 'platform' ? null : acme);
  describe(`of the ${owner}'s policies`, () => {
    test('a stored secret goes to no other origin; with another path, query or shape it stays', async () => {
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET } });
      for (const url of [ELSEWHERE, 'http://vendor.test/scan', 'https://vendor.test:8443/scan', 'https://vendor.tes/'])
        assert.deepEqual(await put(idOf(), { ner: { url } }), moved('ner'), url);
      assert.deepEqual(await sent(), { ner: [VENDOR, SECRET] });
      const sameOrigin = 'https://vendor.test:443/other?model=2';
      await stored(idOf(), { ner: { url: sameOrigin, shape: 'presidio' } });
      assert.deepEqual(await sent(), { ner: [sameOrigin, SECRET] });
      await stored(idOf(), { ner: { url: ELSEWHERE, secret: 'another' } });
      assert.deepEqual(await sent(), { ner: [ELSEWHERE, 'another'] });
    });

    test('an earlier version is put back with its secret, where its address was another', async () => {
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET } });
      await stored(idOf(), { ner: { url: ELSEWHERE, secret: 'another' } });
      const first = await getPolicy(postgres, { organizationId: idOf(), name: 'names', version: 1 });
      assert.ok(!isRefused(first));
      const params = { organizationId: idOf(), name: 'names', version: 2 };
      assert.deepEqual(
        await putPolicy(postgres, box, ACTOR, { ...params, definition: first.definition }),
        moved('ner'),
      );
      assert.deepEqual(await sent(), { ner: [ELSEWHERE, 'another'] });
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET } });
      assert.deepEqual(await sent(), { ner: [VENDOR, SECRET] });
    });

    test('the secret of a detector that is gone is erased, and is not the next one’s of that name', async () => {
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET }, other: { url: VENDOR, secret: 'of the other' } });
      await stored(idOf(), { other: { url: VENDOR } });
      assert.equal(await countSecrets(), 1);
      await stored(idOf(), { ner: { url: VENDOR }, other: { url: VENDOR } });
      assert.deepEqual(await sent(), { ner: [VENDOR, null], other: [VENDOR, 'of the other'] });
      await stored(idOf(), {});
      assert.equal(await countSecrets(), 0);
    });

    test('one that was left behind before secrets were erased is nobody’s', async () => {
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET } });
      await postgres.query('CREATE TABLE left_behind AS SELECT * FROM guardrail_secrets');
      await stored(idOf(), {});
      await postgres.query('DELETE FROM guardrail_secrets');
      await postgres.query('INSERT INTO guardrail_secrets SELECT * FROM left_behind');
      assert.equal(await countSecrets(), 1);
      await stored(idOf(), { ner: { url: ELSEWHERE } });
      assert.deepEqual(await sent(), { ner: [ELSEWHERE, null] });
      assert.equal(await countSecrets(), 0);
    });

    test('a detector that was without a secret moves as it likes; a removed policy leaves none', async () => {
      await stored(idOf(), { constructor: { url: VENDOR } });
      await stored(idOf(), { constructor: { url: ELSEWHERE } });
      await stored(idOf(), { constructor: { url: ELSEWHERE, secret: SECRET } });
      assert.ok(!isRefused(await removePolicy(postgres, ACTOR, { organizationId: idOf(), name: 'names' })));
      await stored(idOf(), { constructor: { url: VENDOR } });
      assert.deepEqual(await sent(), { constructor: [VENDOR, null] });
    });

    test('of two changes at once the later one is held against what the first has stored', async () => {
      await stored(idOf(), { ner: { url: VENDOR, secret: SECRET } });
      const changed = await Promise.all(
        [...Array(6).keys()].flatMap((index) => [
          put(idOf(), { ner: { url: `https://new-${index}.test/`, secret: `of ${index}`.replace(' ', '-') } }),
          put(idOf(), { ner: { url: VENDOR } }),
        ]),
      );
      const refusals = changed.filter(isRefused);
      assert.deepEqual(
        refusals,
        refusals.map(() => moved('ner')),
      );
      const [url, secret] = (await sent())['ner'] ?? [];
      const index = /new-(\d)/.exec(String(url))?.[1];
      assert.equal(secret, index === undefined ? SECRET : `of-${index}`);
    });
  });
}
