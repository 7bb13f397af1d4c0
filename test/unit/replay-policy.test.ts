// A draft policy over recorded requests: the same policy changes nothing, another one gives what an independent
// recomputation gives, and what cannot be replayed is said.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Model } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import { type PicoUsd, picoUsd } from '../../src/domain/money/pico-usd.ts';
import { decideRoute, type RouteDecision } from '../../src/domain/routing/decide-route.ts';
import { type ModelRoute, modelRouteOf } from '../../src/domain/routing/model-route.ts';
import { parsePolicyFile } from '../../src/domain/routing/parse-policy-file.ts';
import { policyOf } from '../../src/domain/routing/policy-definition.ts';
import {
  type Draft,
  type ReplayReport,
  type RoutedRequest,
  replayPolicy,
} from '../../src/domain/routing/replay-policy.ts';
import { RouteCandidates } from '../../src/domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';
import { seededRandom } from '../support/byte-splits.ts';

const PRICES: Readonly<Record<string, readonly [input: bigint, output: bigint]>> = {
  small: [250n, 2_000n],
  middle: [800n, 4_000n],
  large: [1_250n, 10_000n],
};

function model(id: string): Model {
  const [input, output] = PRICES[id] ?? [1n, 1n];
  const price: Price = {
    version: '1',
    input: picoUsd(input),
    output: picoUsd(output),
    cachedInput: null,
    cacheWrite: null,
    image: null,
  };
  return {
    id,
    contextLength: null,
    maxOutputTokens: null,
    servedBy: [{ provider: {}, providerModel: id, apis: ['chat_completions'], price }],
  } as unknown as Model;
}
const MODELS = new Map(Object.keys(PRICES).map((id) => [id, model(id)]));

function policy(
  tiers: readonly (readonly [tier: string, model: string])[],
  changes: Partial<RoutingPolicy> = {},
): RoutingPolicy {
  return {
    name: 'p',
    version: 1,
    classifier: { model: 'judge', timeoutMs: 1, confidenceFloor: 0.6 },
    tiers: tiers.map(([name, id]) => ({ name, description: '', models: [{ id, strengths: [] }] })),
    fallbackTier: tiers.at(-1)?.[0] ?? '',
    kinds: [],
    followUp: { corrections: true, threshold: 0.7 },
    sticky: { minTokens: 5_000 },
    preferNativeApi: false,
    ...changes,
  };
}

const PUBLISHED = policy([
  ['light', 'small'],
  ['strong', 'large'],
]);

function draftOf(drafted: RoutingPolicy, allowed: readonly string[] | null = null): Draft {
  return {
    policy: drafted,
    modelNamed: (name) => MODELS.get(name) ?? null,
    allowedModelsOf: () => (allowed === null ? null : new Set(allowed)),
  };
}

const priceOf = (id: string, input: number, output: number): PicoUsd => {
  const [inputPrice, outputPrice] = PRICES[id] ?? assert.fail(id);
  return picoUsd(BigInt(input) * inputPrice + BigInt(output) * outputPrice);
};

/** What the published policy made of seeded conversations: turns of several requests, failures among them. */
function record(seed: number, conversations: number): RoutedRequest[] {
  const random = seededRandom(seed);
  const requests: RoutedRequest[] = [];
  for (let conversation = 0; conversation < conversations; conversation += 1) {
    let previous: RouteDecision | null = null;
    for (let turn = 0; turn < 4; turn += 1) {
      const inputTokens = Math.floor(random() * 8_000);
      const candidates = candidatesOf(PUBLISHED, inputTokens);
      const tier = random() < 0.6 ? 'light' : 'strong';
      const answer = {
        tier,
        confidence: random(),
        distribution: { [tier]: 0.8 },
        task: null,
        correctionProbability: turn === 0 ? null : random(),
        inputTokens: 9,
      };
      const judgement = random() < 0.1 ? 'classifier_failed' : answer;
      const decision: RouteDecision = decideRoute({
        policy: PUBLISHED,
        candidates,
        judgement,
        conversationTokens: inputTokens,
        previous,
        reasoning: 'none',
      });
      for (let repeat = 0; repeat < 1 + Math.floor(random() * 3); repeat += 1) {
        const outputTokens = Math.floor(random() * 500);
        const turnHashes = { session: 's', conversation: `c${conversation}`, turn: `t${turn}` };
        const route = modelRouteOf(decision, {
          requested: 'service/auto',
          tiers: PUBLISHED.tiers,
          cached: repeat > 0,
          classifier: null,
          turnHashes,
        });
        requests.push(routed(route, decision.model, inputTokens, outputTokens));
      }
      previous = decision;
    }
  }
  return requests;
}

function candidatesOf(of: RoutingPolicy, conversationTokens: number): RouteCandidates {
  const modelNamed = (name: string) => MODELS.get(name) ?? null;
  return new RouteCandidates({
    policy: of,
    api: 'chat_completions',
    modelNamed,
    allowedModels: null,
    isBilled: true,
    conversationTokens,
    outputTokensMax: null,
  });
}

function routed(route: ModelRoute, served: string, inputTokens: number, outputTokens: number): RoutedRequest {
  const usage = { ...NO_COUNTS, inputTokens, outputTokens };
  return {
    organizationId: 'o',
    isBilled: true,
    api: 'chat_completions',
    model: served,
    route,
    requestBytes: inputTokens * 4,
    usage,
    ratedCost: priceOf(served, inputTokens, outputTokens),
    baselineCost: priceOf(route.baseline_model ?? served, inputTokens, outputTokens),
  };
}

describe('a replay', () => {
  test('of the published policy itself changes nothing', async () => {
    const requests = record(1, 200);
    const report = await replayPolicy(draftOf(PUBLISHED), requests);
    assert.deepEqual(
      [report.requests, report.replayed, report.moved, report.unreplayed.size],
      [requests.length, requests.length, 0, 0],
    );
    for (const { was, draft } of report.tiers) assert.equal(draft, was);
    assert.deepEqual(report.draft, report.was);
    assert.equal(report.was.cost, sumOf(requests.map(({ ratedCost }) => ratedCost)));
    assert.equal(report.was.baselineCost, sumOf(requests.map(({ baselineCost }) => baselineCost)));
  });

  test('of another policy gives what a recomputation gives', async () => {
    const requests = record(2, 200);
    const drafted = policy(
      [
        ['light', 'small'],
        ['middle', 'middle'],
        ['strong', 'large'],
      ],
      { classifier: { model: 'judge', timeoutMs: 1, confidenceFloor: 0.4 }, followUp: null, sticky: null },
    );
    const report = await replayPolicy(draftOf(drafted), requests);
    // Independently: by the floor alone, once a turn.
    const expected = requests.map(({ route }) => {
      if (route.reason === 'classifier_failed') return 'strong';
      const sure = (route.confidence ?? 0) >= 0.4;
      return route.classified_tier === 'light' ? (sure ? 'light' : 'middle') : 'strong';
    });
    const models: Readonly<Record<string, string>> = { light: 'small', middle: 'middle', strong: 'large' };
    for (const { tier, was, draft } of report.tiers) {
      assert.equal(draft, expected.filter((one) => one === tier).length, tier);
      assert.equal(was, requests.filter(({ route }) => route.tier === tier).length, tier);
    }
    const cost = (index: number, id: string) =>
      priceOf(id, requests[index]?.usage?.inputTokens ?? 0, requests[index]?.usage?.outputTokens ?? 0);
    assert.equal(report.draft.cost, sumOf(expected.map((tier, index) => cost(index, models[tier] ?? ''))));
    assert.equal(report.draft.baselineCost, sumOf(expected.map((_, index) => cost(index, 'large'))));
    assert.equal(report.moved, expected.filter((tier, index) => models[tier] !== requests[index]?.model).length);
    assert.equal(report.compared, requests.length);
  });

  test('takes a turn’s correction from the draft’s own route of the turn before', async () => {
    const base = {
      requested: 'service/auto',
      cached: false,
      correction: false,
      sticky: false,
      policy: 'p',
      policy_version: 1,
      escalated: false,
      rejected: [],
    };
    const named = { session: 's', conversation: 'c' };
    const first: ModelRoute = {
      ...base,
      ...named,
      turn: '1',
      reason: 'classified',
      tier: 'strong',
      classified_tier: 'light',
      confidence: 0.5,
    };
    const second: ModelRoute = {
      ...first,
      turn: '2',
      confidence: 0.9,
      correction_probability: 0.9,
      previous_model: 'large',
      previous_tier: 'strong',
    };
    const requests = [routed(first, 'large', 10, 10), routed(second, 'large', 10, 10)];
    const drafted = policy(
      [
        ['light', 'small'],
        ['middle', 'middle'],
        ['strong', 'large'],
      ],
      { classifier: { model: 'judge', timeoutMs: 1, confidenceFloor: 0.4 } },
    );
    const both = await replayPolicy(draftOf(drafted), requests);
    assert.deepEqual(tiersOf(both), { light: 1, middle: 1, strong: 0 });
    // Alone, its record tells the turn before: it was the strongest, and no tier is above it.
    assert.deepEqual(tiersOf(await replayPolicy(draftOf(drafted), requests.slice(1))), {
      light: 0,
      middle: 0,
      strong: 1,
    });
  });

  test('says what it cannot tell, and leaves it out of the sums', async () => {
    const requests = record(3, 50);
    const renamed = policy([
      ['cheap', 'small'],
      ['strong', 'large'],
    ]);
    const report = await replayPolicy(draftOf(renamed), requests);
    const light = requests.filter(({ route }) => route.classified_tier === 'light');
    assert.deepEqual(
      [...report.unreplayed],
      [['the classifier chose the tier "light", which the draft does not have', light.length]],
    );
    assert.equal(report.replayed, requests.length - light.length);
    assert.equal(
      report.was.cost,
      sumOf(requests.filter((request) => !light.includes(request)).map(({ ratedCost }) => ratedCost)),
    );
    const denied = await replayPolicy(draftOf(PUBLISHED, ['elsewhere']), requests);
    assert.deepEqual([...denied.unreplayed.keys()], ['the organization may use none of the draft’s models']);
    const none = await replayPolicy({ ...draftOf(PUBLISHED), modelNamed: () => null }, requests);
    assert.deepEqual([...none.unreplayed.keys()], ['no model of the draft can serve it']);
    const elsewhere = requests.slice(0, 1).map((request) => ({ ...request, api: 'messages' as const }));
    assert.match(
      [...(await replayPolicy(draftOf(PUBLISHED), elsewhere)).unreplayed.keys()][0] ?? '',
      /is not served on messages$/,
    );
  });

  test('keeps continuations where they were, and compares no cost that is not known', async () => {
    const [request] = record(4, 1);
    assert.ok(request);
    const route: ModelRoute = { ...request.route, reason: 'continuation' };
    const report = await replayPolicy(draftOf(policy([['all', 'small']])), [
      { ...request, route, model: 'large', ratedCost: null },
      { ...request, route, model: 'large', usage: null },
    ]);
    assert.deepEqual([report.replayed, report.continued, report.moved, report.compared], [2, 2, 0, 1]);
    assert.deepEqual([tiersOf(report)['all'], tiersOf(report)['']], [0, 2]);
  });
});

/** Under the draft. */
function tiersOf({ tiers }: ReplayReport): Record<string, number> {
  return Object.fromEntries(tiers.map(({ tier, draft }) => [tier, draft]));
}

function sumOf(amounts: readonly (bigint | null)[]): bigint {
  return amounts.reduce((sum: bigint, amount) => sum + (amount ?? 0n), 0n);
}

describe('a policy file', () => {
  const text =
    'name: mine\nclassifier: { model: judge }\ntiers: [{ name: light, description: Easy., models: [{ id: small }] }]\n';

  test('is a policy as the configuration file has it', () => {
    const parsed = parsePolicyFile(text);
    assert.ok(parsed.ok);
    assert.deepEqual(policyOf('draft', 0, parsed.definition).tiers, [
      { name: 'light', description: 'Easy.', models: [{ id: 'small', strengths: [] }] },
    ]);
    assert.ok(!('name' in parsed.definition));
  });

  test('is refused with what is wrong in it', () => {
    for (const [wrong, expected] of [
      ['tiers: [', /.+/],
      ['', /^the file: /],
      ['tiers: |S3CRETVAL', /^line 1: Block scalar header includes extra characters$/],
      ['tiers: &a [*a]', /^line 1: an alias stands within its own anchor$/],
      [text.replace('light', '"3"'), /^tiers\.0\.name: must not be a whole number$/],
      [`${text}colour: red\n`, /colour/],
    ] as const) {
      const parsed = parsePolicyFile(wrong);
      assert.ok(!parsed.ok);
      assert.match(parsed.errors.join('\n'), expected);
    }
  });
});
