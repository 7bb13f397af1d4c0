// `tollgate routing replay` and POST /v1/admin/routing/replay: what a whole installation has routed, under a draft. The
// figures equal a recomputation from the posted rows.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse } from 'yaml';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { callRoute } from '../support/generation-routes.ts';
import {
  ROUTING_ADMIN_TOKEN,
  ROUTING_KEYS,
  ROUTING_PRICES,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { decimalOfPico } from '../support/test-configuration.ts';

interface Row {
  readonly organization: string;
  readonly model: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly rated_cost: string;
  readonly model_route: ModelRoute;
}

/** Everything but proofs goes to the cheap tier; no floor. */
const DRAFT = `
name: draft
classifier: { model: judge-latest, confidence_floor: 0 }
tiers:
  - { name: light, description: "Easy.", models: [{ id: sim/small }] }
  - { name: strong, description: "Hard.", models: [{ id: sim/large }] }
`;

let routing: RoutingInstallation;
let rows: readonly Row[] = [];
before(async () => {
  routing = await startRoutingInstallation({ clickhouse: 'away' });
  const judged = ['light:0.95', 'light:0.6:0.2', 'strong:0.9', 'light:0.7:0.1', 'strong:0.6:0.3'];
  for (const [index, words] of [...judged, ...judged].entries()) {
    const key = index % 3 === 0 ? ROUTING_KEYS.free : ROUTING_KEYS.acme;
    const content =
      `Question ${index}, which is a question. [[sim/systemone: tier=${words} kind=prose]] ` +
      `[[sim/text: ` +
      `tokens=${20 + index}]]`;
    const answer = await routing.ask({
      key,
      headers: { 'x-session-id': randomUUID() },
      body: { messages: [{ role: 'user', content }], max_tokens: 200 },
    });
    await routing.routeOf(answer.executionId);
  }
  const read = await routing.postgres.query<Row>(
    `SELECT o.slug AS organization, g.model, g.input_tokens, g.output_tokens, g.rated_cost, g.model_route
       FROM generations g JOIN organizations o ON o.id = g.organization_id WHERE g.model_route IS NOT NULL`,
  );
  rows = read.rows;
});
after(() => routing?.stop());

const costAt = (model: 'small' | 'large', row: Row): bigint =>
  BigInt(row.input_tokens) * ROUTING_PRICES[model].input + BigInt(row.output_tokens) * ROUTING_PRICES[model].output;
const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);

async function replayByApi(body: object, key = ROUTING_ADMIN_TOKEN) {
  const url = `${routing.tollgate.url}/v1/admin/routing/replay`;
  return callRoute(url, { key, body: JSON.stringify(body) });
}

describe('a replay by the API', () => {
  const { name: _, ...definition } = parse(DRAFT) as { name: string };

  for (const organization of [null, 'acme'])
    test(`${organization ?? 'everybody'}: the figures of the command`, async () => {
      const own = rows.filter((row) => organization === null || row.organization === organization);
      const { rows: found } = await routing.postgres.query<{ id: string }>(
        'SELECT id FROM organizations WHERE slug = $1',
        [organization],
      );
      const before = routing.upstream.requests.length;
      const answer = await replayByApi({ policy: definition, days: 1, organization_id: found[0]?.id });
      assert.equal(answer.status, 200, answer.body);
      assert.equal(routing.upstream.requests.length, before, 'nobody is asked');
      const { data } = JSON.parse(answer.body) as { data: Record<string, unknown> };
      const wanted = own.map(({ model_route: route }) => (route.classified_tier === 'light' ? 'small' : 'large'));
      const cost = sum(own.map((row, index) => costAt(wanted[index] ?? 'large', row)));
      const baseline = sum(own.map((row) => costAt('large', row)));
      const was = sum(own.map((row) => BigInt(row.rated_cost)));
      const costs = (amount: bigint) => ({
        cost: decimalOfPico(amount),
        baselined: own.length,
        baselined_cost: decimalOfPico(amount),
        baseline_cost: decimalOfPico(baseline),
        savings: decimalOfPico(baseline - amount),
      });
      assert.deepEqual(data, {
        days: 1,
        whole: true,
        requests: own.length,
        replayed: own.length,
        continued: 0,
        moved: own.filter(({ model }, index) => model !== `sim/${wanted[index]}`).length,
        unreplayed: [],
        tiers: ['light', 'strong'].map((tier) => ({
          tier,
          was: own.filter(({ model_route: route }) => route.tier === tier).length,
          draft: wanted.filter((one) => (one === 'small' ? 'light' : 'strong') === tier).length,
        })),
        compared: own.length,
        was: costs(was),
        draft: costs(cost),
      });
    });

  test('passes over what a policy names and is not active, by its name and as a draft', async () => {
    const read = async (policy: unknown) => {
      const answer = await replayByApi({ policy, days: 1 });
      assert.equal(answer.status, 200, answer.body);
      return (JSON.parse(answer.body) as { data: { replayed: number } }).data;
    };
    const light = DRAFT.replace('name: draft', '').replace(
      '[{ id: sim/small }]',
      '[{ id: sim/gone }, { id: sim/small }]',
    );
    assert.deepEqual(await read(parse(light)), await read(definition));
    assert.equal((await read('stranded')).replayed, 0);
  });

  test('takes a published policy by its name; is the platform’s alone; refuses what could not be published', async () => {
    const { rows: policies } = await routing.postgres.query<{ name: string }>(
      'SELECT name FROM routing_policies LIMIT 1',
    );
    const published = await replayByApi({ policy: policies[0]?.name });
    assert.equal((JSON.parse(published.body) as { data: { requests: number } }).data.requests, rows.length);
    assert.equal((await replayByApi({ policy: definition }, ROUTING_KEYS.acme)).status, 403);
    assert.equal((await replayByApi({ policy: definition, organization_id: randomUUID() })).status, 404);
    const mistakes: readonly [object, RegExp][] = [
      [{}, /policy/],
      [{ policy: 'absent' }, /policy.*name of a routing policy/],
      [{ policy: definition, days: 32 }, /days.*at most 31/],
      [{ policy: parse(DRAFT.replace('name: draft', '').replace('sim/small', 'sim/nowhere')) }, /sim\/nowhere/],
    ];
    for (const [body, expected] of mistakes) {
      const answer = await replayByApi(body);
      assert.equal(answer.status, 400, answer.body);
      assert.match(answer.body, expected);
    }
  });
});

describe('tollgate routing replay', () => {
  for (const organization of [null, 'acme']) {
    test(
      `${organization ?? 'everybody'}: shares, cost and savings under the draft, beside what ` + `was`,
      async (context) => {
        const file = join(temporaryDirectory(context), 'draft.yaml');
        writeFileSync(file, DRAFT);
        const before = routing.upstream.requests.length;
        const args = [
          'routing',
          'replay',
          '--policy',
          file,
          '--days',
          '1',
          ...(organization === null ? [] : ['--organization', organization]),
        ];
        const { exitCode, output } = await routing.tollgate.run(args);
        assert.equal(exitCode, 0, output);
        assert.equal(routing.upstream.requests.length, before);
        const own = rows.filter((row) => organization === null || row.organization === organization);
        const wanted = own.map(({ model_route: route }) => (route.classified_tier === 'light' ? 'small' : 'large'));
        const share = (count: number) => `${count} (${((100 * count) / own.length).toFixed(1)} %)`;
        const was = (tier: string) => own.filter(({ model_route: route }) => route.tier === tier).length;
        const draft = (model: string) => wanted.filter((one) => one === model).length;
        const [wasCost, draftCost] = [
          sum(own.map((row) => BigInt(row.rated_cost))),
          sum(own.map((row, index) => costAt(wanted[index] ?? 'large', row))),
        ];
        const baseline = sum(own.map((row) => costAt('large', row)));
        const costs = (cost: bigint) =>
          [cost, baseline]
            .map(decimalOfPico)
            .concat(`${decimalOfPico(baseline - cost)} (${own.length} requests)`)
            .join('\t');
        const moved = own.filter(({ model }, index) => model !== `sim/${wanted[index]}`).length;
        assert.ok(moved > 0 && wasCost > draftCost);
        assert.deepEqual(output.trim().split('\n'), [
          `${own.length} requests were routed in 1 days; ${own.length} replayed, 0 of them as ` +
            `continuations; ${moved} would have had another model`,
          'tier\twas\tdraft',
          `light\t${share(was('light'))}\t${share(draft('small'))}`,
          `strong\t${share(was('strong'))}\t${share(draft('large'))}`,
          `of ${own.length} requests whose cost is known both ways (the same tokens, at the price of the draft's model):`,
          '\tcost USD\tbaseline USD\tsaved USD',
          `was\t${costs(wasCost)}`,
          `draft\t${costs(draftCost)}`,
        ]);
      },
    );
  }

  test('refuses a draft that could not be published, and says what it cannot replay', async (context) => {
    const directory = temporaryDirectory(context);
    const replay = async (text: string, options: readonly string[] = ['--days', '1']) => {
      const file = join(directory, 'draft.yaml');
      writeFileSync(file, text);
      return routing.tollgate.run(['routing', 'replay', '--policy', file, ...options]);
    };
    const mistakes: readonly [string, readonly string[] | undefined, RegExp][] = [
      [
        DRAFT.replace('sim/small', 'sim/nowhere'),
        undefined,
        /the draft cannot be used: tiers\.0\.models\.0\.id.*there is no model "sim\/nowhere"/,
      ],
      [DRAFT.replace('tiers:', 'tears:'), undefined, /draft\.yaml cannot be used:[^]*tears/],
      [DRAFT, ['--days', '1', '--organization', 'nobody'], /there is no organization "nobody"/],
      [DRAFT, ['--days', '0'], /--days: must be a whole number/],
    ];
    for (const [text, options, expected] of mistakes) {
      const { exitCode, output } = await replay(text, options);
      assert.notEqual(exitCode, 0);
      assert.match(output, expected);
    }
    const { output } = await replay(DRAFT.replace('name: light', 'name: cheap'));
    const light = rows.filter(({ model_route: route }) => route.classified_tier === 'light').length;
    assert.match(
      output,
      new RegExp(`not replayed: ${light}\\tthe classifier chose the tier "light", which the draft does not have`),
    );
  });
});
