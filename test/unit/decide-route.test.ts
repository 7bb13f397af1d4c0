// The decision of auto routing, rule by rule (spec 3.2, 4.11): every reason, escalation, stickiness, strengths, API
// family, access, size, safety, baseline.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiName } from '../../src/domain/models/apis.ts';
import type { Model } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { ClassifierAnswer } from '../../src/domain/routing/classifier-questions.ts';
import {
  continueRoute,
  decideRoute,
  type Judgement,
  type RouteDecision,
  repeatRoute,
} from '../../src/domain/routing/decide-route.ts';
import { modelRouteOf } from '../../src/domain/routing/model-route.ts';
import { type CandidateParams, RouteCandidates } from '../../src/domain/routing/route-candidates.ts';
import type { RoutingPolicy } from '../../src/domain/routing/routing-policy.ts';

const PRICE = {
  version: '1',
  input: picoUsd(1n),
  output: picoUsd(1n),
  cachedInput: null,
  cacheWrite: null,
  image: null,
} satisfies Price;
const OPENAI: readonly ApiName[] = ['chat_completions', 'responses'];
const ANTHROPIC: readonly ApiName[] = ['messages', 'count_tokens'];

function model(
  id: string,
  options: { context?: number | null; output?: number; apis?: readonly ApiName[]; price?: Price | null } = {},
): Model {
  const { context = 100_000, output = 8_000, apis = [...OPENAI, ...ANTHROPIC], price = PRICE } = options;
  return {
    id,
    contextLength: context,
    maxOutputTokens: output,
    servedBy: [{ provider: {}, providerModel: id, apis, price }],
  } as unknown as Model;
}

const MODELS: readonly Model[] = [
  model('a', { apis: OPENAI }),
  model('a-claude', { apis: ANTHROPIC }),
  model('a-code'),
  model('b'),
  model('c', { context: 400_000 }),
  model('c-huge', { context: 1_000_000 }),
  model('elsewhere'),
];

const POLICY: RoutingPolicy = {
  name: 'default',
  version: 3,
  classifier: { model: 'judge', timeoutMs: 800, confidenceFloor: 0.6 },
  tiers: [
    {
      name: 'light',
      description: '',
      models: ['a', 'a-claude', 'a-code'].map((id) => ({ id, strengths: id === 'a-code' ? ['code'] : [] })),
    },
    { name: 'middle', description: '', models: [{ id: 'b', strengths: [] }] },
    { name: 'strong', description: '', models: ['c', 'c-huge'].map((id) => ({ id, strengths: [] })) },
  ],
  fallbackTier: 'strong',
  kinds: [
    { name: 'code', description: '' },
    { name: 'prose', description: '' },
  ],
  followUp: { corrections: true, threshold: 0.7 },
  sticky: { minTokens: 20_000 },
  preferNativeApi: true,
};

function answer(tier: string, changes: Partial<ClassifierAnswer> = {}): ClassifierAnswer {
  return {
    tier,
    confidence: 0.9,
    distribution: { [tier]: 0.95 },
    task: null,
    correctionProbability: null,
    ...changes,
  };
}

const tooSmall =
  (tier: string) =>
  (name: string): RouteDecision['rejected'][number] => ({ model: name, tier, reason: 'context_too_small' });

interface Case extends Partial<Omit<CandidateParams, 'policy' | 'allowedModels' | 'modelNamed'>> {
  readonly judgement: Judgement;
  readonly policy?: Partial<RoutingPolicy>;
  readonly models?: readonly Model[];
  readonly allowed?: readonly string[];
  readonly previous?: readonly [model: string, tier: string | null];
  readonly signed?: true;
  readonly paused?: readonly string[];
}

function candidatesOf(given: Omit<Case, 'judgement'>): RouteCandidates {
  const models = given.models ?? MODELS;
  return new RouteCandidates({
    policy: { ...POLICY, ...given.policy },
    api: given.api ?? 'chat_completions',
    modelNamed: (name) => models.find(({ id }) => id === name) ?? null,
    allowedModels: given.allowed === undefined ? null : new Set(given.allowed),
    isBilled: given.isBilled ?? true,
    conversationTokens: given.conversationTokens ?? 1_000,
    outputTokensMax: given.outputTokensMax ?? null,
    isPaused: ({ id }) => given.paused?.includes(id) === true,
  });
}

function decide(given: Case): RouteDecision {
  return decideRoute({
    policy: { ...POLICY, ...given.policy },
    candidates: candidatesOf(given),
    judgement: given.judgement,
    conversationTokens: given.conversationTokens ?? 1_000,
    previous: given.previous === undefined ? null : { model: given.previous[0], tier: given.previous[1] },
    reasoning: given.signed ? 'signed' : 'none',
  });
}

const paused =
  (tier: string) =>
  (name: string): RouteDecision['rejected'][number] => ({ model: name, tier, reason: 'paused' });

const without = (...ids: string[]): readonly Model[] => MODELS.filter(({ id }) => !ids.includes(id));
const replacing = (changed: Model): readonly Model[] =>
  MODELS.map((found) => (found.id === changed.id ? changed : found));

describe('the route of a turn', () => {
  const cases: readonly [title: string, given: Case, expected: Partial<RouteDecision>][] = [
    // Pauses.
    [
      'another model of the tier serves while the first one is paused',
      { judgement: answer('light'), paused: ['a', 'c'] },
      { tier: 'light', model: 'a-code', reason: 'classified', rejected: [paused('light')('a')] },
    ],
    [
      'the nearest tier serves while all models of the tier are paused',
      { judgement: answer('middle'), paused: ['b', 'c'] },
      { tier: 'strong', model: 'c-huge', rejected: [paused('middle')('b'), paused('strong')('c')] },
    ],
    [
      'a long conversation leaves its model while that is paused',
      { judgement: answer('light'), conversationTokens: 30_000, previous: ['b', 'middle'], paused: ['b'] },
      { tier: 'light', model: 'a', sticky: false, rejected: [] },
    ],
    [
      'signed reasoning stays on its model, paused or not',
      { judgement: answer('light'), previous: ['b', 'middle'], paused: ['b'], signed: true },
      { tier: 'middle', model: 'b', safety: 'signed_reasoning' },
    ],
    [
      'where all that could serve are paused, it is chosen as if none were',
      { judgement: answer('light'), models: without('c', 'c-huge'), paused: ['a', 'a-claude', 'a-code', 'b'] },
      { tier: 'light', model: 'a', rejected: [] },
    ],
    // Reasons.
    [
      'a sure classification is followed',
      { judgement: answer('light') },
      { tier: 'light', model: 'a', reason: 'classified', classifiedTier: 'light' },
    ],
    [
      'confidence at the floor is sure',
      { judgement: answer('light', { confidence: 0.6 }) },
      { tier: 'light', reason: 'classified', confidence: 0.6 },
    ],
    [
      'below the floor the next stronger tier serves',
      { judgement: answer('light', { confidence: 0.59 }) },
      { tier: 'middle', model: 'b', reason: 'low_confidence_escalated', classifiedTier: 'light', confidence: 0.59 },
    ],
    [
      'there is no tier above the strongest',
      { judgement: answer('strong', { confidence: 0.1 }) },
      { tier: 'strong', reason: 'low_confidence_escalated' },
    ],
    [
      'a failed classifier: the fallback tier',
      { judgement: 'classifier_failed' },
      { tier: 'strong', model: 'c', reason: 'classifier_failed', classifiedTier: null },
    ],
    [
      'no human text: the fallback tier',
      { judgement: 'no_request_text' },
      { tier: 'strong', reason: 'no_request_text' },
    ],
    [
      'nothing classified yet: the fallback tier that the administrator chose',
      { judgement: 'classifier_skipped', policy: { fallbackTier: 'middle' } },
      { tier: 'middle', model: 'b', reason: 'classifier_skipped', confidence: null },
    ],
    // Corrections.
    [
      'a correction starts one tier above the tier that answered',
      { judgement: answer('light', { correctionProbability: 0.7 }), previous: ['a', 'light'] },
      {
        tier: 'middle',
        reason: 'correction_escalated',
        correction: true,
        correctionProbability: 0.7,
        classifiedTier: 'light',
      },
    ],
    [
      'below the threshold it is none',
      { judgement: answer('light', { correctionProbability: 0.69 }), previous: ['a', 'light'] },
      { tier: 'light', correction: false },
    ],
    [
      'a correction of the strongest tier stays there',
      { judgement: answer('light', { correctionProbability: 0.9 }), previous: ['c', 'strong'] },
      { tier: 'strong', reason: 'correction_escalated' },
    ],
    [
      'where the classifier asks for more than that, it is followed',
      { judgement: answer('strong', { correctionProbability: 0.9 }), previous: ['a', 'light'] },
      { tier: 'strong', reason: 'classified', correction: true },
    ],
    [
      'low confidence that leads as far as the correction is low confidence',
      { judgement: answer('light', { correctionProbability: 0.9, confidence: 0.2 }), previous: ['a', 'light'] },
      { tier: 'middle', reason: 'low_confidence_escalated', correction: true },
    ],
    [
      'a correction of nobody knows what',
      { judgement: answer('light', { correctionProbability: 0.9 }) },
      { tier: 'light', reason: 'classified', correction: true },
    ],
    [
      'a policy without the setting knows none',
      {
        judgement: answer('light', { correctionProbability: 0.9 }),
        previous: ['a', 'light'],
        policy: { followUp: null },
      },
      { tier: 'light', correction: false },
    ],
    [
      'the tier that answered has gone from the policy: the one that has its model now',
      { judgement: answer('light', { correctionProbability: 0.9 }), previous: ['b', 'former'] },
      { tier: 'strong', reason: 'correction_escalated' },
    ],
    // Stickiness.
    [
      'a long conversation that needs a cheaper tier stays on its model',
      { judgement: answer('light'), previous: ['c-huge', 'strong'], conversationTokens: 20_000 },
      { tier: 'strong', model: 'c-huge', sticky: true, reason: 'classified', classifiedTier: 'light', pickedBy: null },
    ],
    [
      'and one that needs the same tier',
      { judgement: answer('strong'), previous: ['c-huge', 'strong'], conversationTokens: 50_000 },
      { tier: 'strong', model: 'c-huge', sticky: true },
    ],
    [
      'a shorter one does not',
      { judgement: answer('light'), previous: ['c', 'strong'], conversationTokens: 19_999 },
      { tier: 'light', sticky: false },
    ],
    [
      'one that needs a stronger tier does not',
      { judgement: answer('strong'), previous: ['b', 'middle'], conversationTokens: 50_000 },
      { model: 'c', sticky: false },
    ],
    [
      'a correction does not',
      {
        judgement: answer('light', { correctionProbability: 0.9 }),
        previous: ['b', 'middle'],
        conversationTokens: 50_000,
      },
      { tier: 'strong', model: 'c', sticky: false, reason: 'correction_escalated' },
    ],
    [
      'a policy that keeps none',
      { judgement: answer('light'), previous: ['c', 'strong'], conversationTokens: 50_000, policy: { sticky: null } },
      { tier: 'light' },
    ],
    [
      'a model that the policy has lost is not kept',
      { judgement: answer('light'), previous: ['elsewhere', 'strong'], conversationTokens: 50_000 },
      { tier: 'light', sticky: false },
    ],
    [
      'nor one that the caller may no longer use',
      { judgement: answer('light'), previous: ['c-huge', 'strong'], conversationTokens: 50_000, allowed: ['a', 'c'] },
      { tier: 'light', sticky: false },
    ],
    [
      'nor one that has become too small',
      { judgement: answer('middle'), previous: ['b', 'middle'], conversationTokens: 150_000 },
      { tier: 'strong', model: 'c', sticky: false },
    ],
    [
      'unclassified turns belong to the fallback tier: within it they stay',
      { judgement: 'classifier_failed', previous: ['c-huge', 'strong'], conversationTokens: 50_000 },
      { tier: 'strong', model: 'c-huge', sticky: true },
    ],
    [
      'and nowhere else',
      {
        judgement: 'classifier_failed',
        previous: ['c', 'strong'],
        conversationTokens: 50_000,
        policy: { fallbackTier: 'light' },
      },
      { tier: 'light', sticky: false, reason: 'classifier_failed' },
    ],
    // Strengths and the family of the called API.
    [
      'a model that is strong at the kind is tried first',
      { judgement: answer('light', { task: 'code' }) },
      { model: 'a-code', pickedBy: 'strength', task: 'code' },
    ],
    ['another kind: tier order', { judgement: answer('light', { task: 'prose' }) }, { model: 'a', pickedBy: null }],
    [
      'the family of the called API',
      { judgement: answer('light'), api: 'messages' },
      { model: 'a-claude', pickedBy: 'native_api' },
    ],
    [
      'a token count is of the same family',
      { judgement: answer('light'), api: 'count_tokens' },
      { model: 'a-claude', pickedBy: 'native_api' },
    ],
    [
      'the first is of the family already',
      { judgement: answer('light'), api: 'responses' },
      { model: 'a', pickedBy: null },
    ],
    [
      'a policy that does not care: it is tried as it stands',
      { judgement: answer('light'), api: 'messages', policy: { preferNativeApi: false } },
      { model: 'a', pickedBy: null },
    ],
    [
      'a strength counts more',
      { judgement: answer('light', { task: 'code' }), api: 'messages' },
      { model: 'a-code', pickedBy: 'strength' },
    ],
    [
      'a model that cannot serve the API is nobody of its family',
      { judgement: answer('light'), api: 'count_tokens', models: replacing(model('a-claude', { apis: ['messages'] })) },
      { model: 'a', pickedBy: null },
    ],
    // Who can serve.
    [
      'what is not in the catalog is passed over',
      { judgement: answer('light'), models: without('a') },
      { model: 'a-code', rejected: [{ model: 'a', tier: 'light', reason: 'unavailable' }] },
    ],
    [
      'and what the access policy excludes',
      { judgement: answer('light'), allowed: ['a-code', 'b'] },
      { model: 'a-code', rejected: [{ model: 'a', tier: 'light', reason: 'not_permitted' }] },
    ],
    [
      'and, for a billed caller, what has no price',
      { judgement: answer('middle'), models: replacing(model('b', { price: null })) },
      {
        tier: 'strong',
        model: 'c',
        classifiedTier: 'middle',
        reason: 'classified',
        rejected: [{ model: 'b', tier: 'middle', reason: 'no_price' }],
      },
    ],
    [
      'which matters to nobody else',
      { judgement: answer('middle'), models: replacing(model('b', { price: null })), isBilled: false },
      { model: 'b' },
    ],
    [
      'nor to a token count',
      { judgement: answer('middle'), models: replacing(model('b', { price: null })), api: 'count_tokens' },
      { model: 'b' },
    ],
    [
      'a conversation that is too long for a tier goes to the next stronger one',
      { judgement: answer('middle'), conversationTokens: 100_001 },
      { tier: 'strong', model: 'c', rejected: [{ model: 'b', tier: 'middle', reason: 'context_too_small' }] },
    ],
    [
      'the reply needs room as well',
      { judgement: answer('middle'), conversationTokens: 95_000, outputTokensMax: 5_001 },
      { model: 'c' },
    ],
    [
      'as much of it as the model can write',
      { judgement: answer('middle'), conversationTokens: 92_000, outputTokensMax: 50_000 },
      { model: 'b' },
    ],
    [
      'a model whose context nobody knows',
      { judgement: answer('middle'), conversationTokens: 5e6, models: replacing(model('b', { context: null })) },
      { model: 'b' },
    ],
    [
      'too long for all, as far as one can tell: the largest',
      { judgement: answer('light'), conversationTokens: 3_000_000 },
      {
        tier: 'strong',
        model: 'c-huge',
        rejected: [
          ...['a', 'a-claude', 'a-code'].map(tooSmall('light')),
          tooSmall('middle')('b'),
          tooSmall('strong')('c'),
        ],
      },
    ],
    [
      'the largest of a cheaper tier, whichever was wanted; each of the others with its own reason',
      {
        judgement: answer('strong'),
        conversationTokens: 3_000_000,
        allowed: ['a', 'b', 'c'],
        models: replacing(model('a', { context: 2_000_000 })),
      },
      {
        tier: 'light',
        model: 'a',
        reason: 'classified',
        rejected: [
          { model: 'a-claude', tier: 'light', reason: 'not_permitted' },
          { model: 'a-code', tier: 'light', reason: 'not_permitted' },
          tooSmall('middle')('b'),
          tooSmall('strong')('c'),
          { model: 'c-huge', tier: 'strong', reason: 'not_permitted' },
        ],
      },
    ],
    [
      'nothing above can serve: the nearest weaker tier',
      { judgement: answer('strong'), models: without('c', 'c-huge') },
      {
        tier: 'middle',
        model: 'b',
        reason: 'classified',
        rejected: [
          { model: 'c', tier: 'strong', reason: 'unavailable' },
          { model: 'c-huge', tier: 'strong', reason: 'unavailable' },
        ],
      },
    ],
    ['a tier that the policy no longer has', { judgement: answer('gone') }, { tier: 'strong', model: 'c' }],
    // A tier that access policy took away.
    [
      'the caller may use no model of the tier that the classifier chose, and the record says so',
      { judgement: answer('middle'), allowed: ['a', 'c'] },
      {
        tier: 'strong',
        model: 'c',
        reason: 'tier_not_permitted',
        classifiedTier: 'middle',
        rejected: [{ model: 'b', tier: 'middle', reason: 'not_permitted' }],
      },
    ],
    [
      'some model of it will do',
      { judgement: answer('light'), allowed: ['a-code', 'c'] },
      { tier: 'light', model: 'a-code', reason: 'classified' },
    ],
    [
      'an escalation says why it was one',
      { judgement: answer('light', { confidence: 0.1 }), allowed: ['a', 'c'] },
      { tier: 'strong', model: 'c', reason: 'low_confidence_escalated' },
    ],
    [
      'no classification, no choice to be taken away',
      { judgement: 'classifier_failed', allowed: ['a'] },
      { tier: 'light', model: 'a', reason: 'classifier_failed' },
    ],
    // Signed reasoning.
    [
      'signed reasoning keeps the model, and the record says so',
      { judgement: answer('strong'), previous: ['a', 'light'], signed: true },
      {
        tier: 'light',
        model: 'a',
        safety: 'signed_reasoning',
        reason: 'classified',
        rejected: [{ model: 'c', tier: 'strong', reason: 'signed_reasoning' }],
      },
    ],
    [
      'where nothing would have changed it is not mentioned',
      { judgement: answer('light'), previous: ['a', 'light'], signed: true },
      { model: 'a', safety: null, rejected: [] },
    ],
    [
      'it also keeps a model that the policy has lost',
      { judgement: answer('light'), previous: ['elsewhere', 'former'], signed: true },
      { tier: 'former', model: 'elsewhere', safety: 'signed_reasoning' },
    ],
    [
      'but none that cannot be called',
      { judgement: answer('light'), previous: ['gone', 'strong'], signed: true },
      { model: 'a', safety: null },
    ],
    [
      'nor one that the caller may not use',
      { judgement: answer('light'), previous: ['c', 'strong'], signed: true, allowed: ['a'] },
      { model: 'a', safety: null },
    ],
    [
      'nothing is remembered: there is nothing to keep to',
      { judgement: answer('light'), signed: true },
      { model: 'a', safety: null },
    ],
    // The baseline.
    [
      'the strongest tier is what a cheaper one is compared with',
      { judgement: answer('light') },
      { baselineModel: 'c' },
    ],
    [
      'the strongest tier is compared with itself',
      { judgement: answer('strong'), previous: ['c-huge', 'strong'], conversationTokens: 50_000 },
      { baselineModel: 'c-huge' },
    ],
    [
      'only with what this request could have used',
      { judgement: answer('light'), allowed: ['a', 'c-huge'] },
      { baselineModel: 'c-huge' },
    ],
    [
      'with the next tier, where none of the strongest could serve',
      { judgement: answer('light'), models: without('c', 'c-huge') },
      { baselineModel: 'b' },
    ],
  ];
  for (const [title, given, expected] of cases) {
    test(title, () => {
      const decision = decide(given);
      assert.deepEqual(
        Object.fromEntries(Object.keys(expected).map((field) => [field, decision[field as keyof RouteDecision]])),
        expected,
      );
      assert.deepEqual([decision.policy, decision.policyVersion], ['default', 3]);
    });
  }
});

describe('whether anybody can serve', () => {
  const cases: readonly [string, Omit<Case, 'judgement'>, RouteCandidates['failure']][] = [
    ['somebody can', {}, null],
    ['the access policy excludes everyone', { allowed: ['elsewhere'] }, 'denied'],
    ['everyone that there is', { allowed: [], models: without('a', 'b') }, 'denied'],
    ['nobody is there', { models: [] }, 'unavailable'],
    ['nobody is there, and nobody would be permitted', { models: [], allowed: [] }, 'unavailable'],
    ['those who may have no price', { allowed: ['b'], models: replacing(model('b', { price: null })) }, 'unavailable'],
    ['size is told apart', { conversationTokens: 1e9 }, null],
  ];
  for (const [title, given, expected] of cases) test(title, () => assert.equal(candidatesOf(given).failure, expected));

  const sizes: readonly [string, Omit<Case, 'judgement'>, boolean][] = [
    ['it fits', {}, false],
    ['the largest alone', { conversationTokens: 900_000 }, false],
    ['nobody', { conversationTokens: 1e9 }, true],
    ['nobody whom the caller may use', { conversationTokens: 900_000, allowed: ['a', 'c'] }, true],
    ['nobody is permitted anyway', { conversationTokens: 1e9, allowed: [] }, false],
    ['nobody is there anyway', { conversationTokens: 1e9, models: [] }, false],
  ];
  for (const [title, given, expected] of sizes)
    test(`large enough: ${title}`, () => assert.equal(candidatesOf(given).isTooLarge, expected));
});

describe('a further request of a turn', () => {
  const decided = decide({ judgement: answer('light', { task: 'code' }), previous: ['b', 'middle'] });

  test('stays on its model, whatever it would be classified as', () => {
    assert.deepEqual(repeatRoute(POLICY, candidatesOf({ conversationTokens: 90_000, api: 'messages' }), decided), {
      ...decided,
      rejected: [],
    });
  });

  test('also when the conversation has grown beyond the model: its provider says so', () => {
    assert.equal(repeatRoute(POLICY, candidatesOf({ conversationTokens: 300_000 }), decided).model, 'a-code');
  });

  test('goes to the nearest other model for a caller who cannot call it', () => {
    const other = repeatRoute(POLICY, candidatesOf({ allowed: ['a', 'c'] }), decided);
    assert.deepEqual([other.tier, other.model, other.pickedBy, other.baselineModel], ['light', 'a', null, 'c']);
    assert.deepEqual(other.rejected[0], { model: 'a-code', tier: 'light', reason: 'not_permitted' });
    assert.equal(repeatRoute(POLICY, candidatesOf({ models: without('a-code') }), decided).model, 'a');
    const denied = repeatRoute(POLICY, candidatesOf({ allowed: ['c'] }), decided);
    assert.deepEqual([other.reason, denied.reason, denied.model], ['classified', 'tier_not_permitted', 'c']);
  });
});

describe('a continuation', () => {
  test('stays on the model that produced the response, in the tier that has it', () => {
    const route = continueRoute(POLICY, candidatesOf({}), { model: 'b', tier: null });
    assert.deepEqual(
      [route.model, route.tier, route.reason, route.baselineModel, route.confidence],
      ['b', 'middle', 'continuation', 'c', null],
    );
    assert.deepEqual(route.previous, { model: 'b', tier: 'middle' });
  });

  test('also when no tier has it, or the caller may use none of the others', () => {
    const route = continueRoute(POLICY, candidatesOf({ allowed: [] }), { model: 'elsewhere', tier: null });
    assert.deepEqual([route.model, route.tier, route.baselineModel], ['elsewhere', null, null]);
  });
});

describe('the record', () => {
  const circumstances = {
    requested: 'service/auto',
    tiers: POLICY.tiers,
    cached: false,
    classifier: null,
    turnHashes: null,
  };

  test('has the names and forms of the spec, and leaves out what does not apply', () => {
    assert.deepEqual(modelRouteOf(decide({ judgement: answer('light') }), circumstances), {
      requested: 'service/auto',
      tier: 'light',
      classified_tier: 'light',
      reason: 'classified',
      confidence: 0.9,
      cached: false,
      correction: false,
      sticky: false,
      baseline_model: 'c',
      policy: 'default',
      policy_version: 3,
      tier_rank: 0,
      escalated: false,
      rejected: [],
      distribution: { light: 0.95 },
    });
  });

  test('names the first 64 that were passed over, and how many more there were', () => {
    const rejected = Array.from({ length: 1_000 }, (_, index) => tooSmall('light')(`m${index}`));
    const decision = { ...decide({ judgement: answer('light') }), rejected };
    const route = modelRouteOf(decision, circumstances);
    assert.deepEqual(route.rejected, rejected.slice(0, 64));
    assert.equal(route.rejected_more, 936);
    const all = modelRouteOf({ ...decision, rejected: route.rejected }, circumstances);
    assert.deepEqual([all.rejected.length, all.rejected_more], [64, undefined]);
  });

  test('has everything that applies', () => {
    const decision = decide({
      judgement: answer('light', { task: 'code', correctionProbability: 0.8 }),
      previous: ['a', 'light'],
      models: without('b'),
    });
    const classifier = { model: 'judge', inputTokens: 412, cost: picoUsd(17_304_000n), latencyMs: 120 };
    const turnHashes = { session: 's', conversation: 'k', turn: 't' };
    assert.deepEqual(modelRouteOf(decision, { ...circumstances, cached: true, classifier, turnHashes }), {
      requested: 'service/auto',
      tier: 'strong',
      classified_tier: 'light',
      reason: 'correction_escalated',
      confidence: 0.9,
      cached: true,
      task: 'code',
      correction: true,
      correction_probability: 0.8,
      previous_model: 'a',
      previous_tier: 'light',
      sticky: false,
      baseline_model: 'c',
      policy: 'default',
      policy_version: 3,
      tier_rank: 2,
      escalated: true,
      rejected: [{ model: 'b', tier: 'middle', reason: 'unavailable' }],
      distribution: { light: 0.95 },
      classifier: { model: 'judge', input_tokens: 412, cost_usd: '0.000017304', latency_ms: 120 },
      session: 's',
      conversation: 'k',
      turn: 't',
    });
  });
});
