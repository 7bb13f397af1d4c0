// What a request holds under which limits, which of several refuses it, and what its end leaves used (spec 7.4, 8).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Principal, PrincipalLimit } from '../../src/domain/identity/principal.ts';
import type { Model } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import { picoUsd } from '../../src/domain/money/pico-usd.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import { NO_COUNTS } from '../../src/domain/usage/usage.ts';
import { Admission, tokensUsed } from '../../src/generation/admission/admission.ts';
import { type AdmissionParts, admit, COUNTS } from '../../src/generation/admission/admit.ts';
import { OrganizationQueues } from '../../src/generation/admission/organization-queues.ts';
import { type AdmissionParams, type HoldPlan, planHolds } from '../../src/generation/admission/plan-holds.ts';
import type { Deployment, ServedModel } from '../../src/generation/catalog/serving-catalog.ts';
import { worstOf } from '../../src/generation/catalog/worst-price.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { embeddings } from '../../src/generation/dialects/embeddings.ts';
import { imageGenerations } from '../../src/generation/dialects/images.ts';
import { messages, readBetaCeilings } from '../../src/generation/dialects/messages.ts';
import { systemone } from '../../src/generation/dialects/systemone.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import type { WorkerPool, WorkerResult } from '../../src/platform/worker-pool.ts';
import { principalOf } from '../support/principals.ts';
import { priceOf } from '../support/real-bills.ts';
import { SimulatedLeaseStore } from '../support/simulated-lease-store.ts';

const MODEL: Model = {
  id: 'sim/small',
  displayName: 'Small',
  kind: 'text',
  aliases: [],
  contextLength: 100_000,
  maxOutputTokens: 10_000,
  maxCompletionTokensCap: null,
  attachmentTokensMax: null,
  tokenizer: 'o200k_base',
  active: true,
  createdAtMs: 0,
  servedBy: [],
};
const PRICE = { input: picoUsd(1n), inputWithHourCache: picoUsd(2n), output: picoUsd(10n), image: picoUsd(1_000n) };

const ON_OWN_KEY = {
  price: priceOf({ input: '1.00', output: '10.00' }),
  ownKey: { keyId: 'own', organizationId: 'o', fingerprint: '', fee: null, budgets: 'all', isPrevious: false },
} as Deployment;

const PRINCIPAL = principalOf('o', { apiKeyId: 'k', walletId: 'w' });
const NOT_BILLED: Principal = { ...PRINCIPAL, billed: false, walletId: null };

function limit(id: PrincipalLimit['kind'], amount: bigint, model: string | null = null): PrincipalLimit {
  return { id, scope: 'team', setBy: 'organization', kind: id, window: id === 'budget' ? 'day' : null, amount, model };
}

const scanner = new RequestScanner();

function ask(principal: Principal, body: object, dialect: Dialect = chatCompletions): AdmissionParams {
  const bytes = Buffer.from(JSON.stringify(body));
  const scanned = scanner.scan(bytes);
  const bounds = dialect.readBounds(scanned, bytes);
  assert.ok(!('kind' in bounds));
  const served = { model: MODEL, deployments: new Map(), classifiers: [], worstPrice: new Map([[dialect.api, PRICE]]) };
  const measure = { bytes: bytes.length, attachments: 0, carriedTokens: 0 };
  return { principal, dialect, served, bounds, measure, request: { body: bytes, scanned, form: null } };
}

function planOf(question: AdmissionParams): HoldPlan {
  const plan = planHolds(question, question.measure);
  assert.ok(!('kind' in plan));
  return plan;
}

function refusalOf(question: AdmissionParams): Refusal {
  const refusal = planHolds(question, question.measure);
  assert.ok('kind' in refusal);
  return refusal;
}

const needsOf = (question: AdmissionParams) => planOf(question).needs.map(({ quota, amount }) => [quota.kind, amount]);

const ALL = [
  limit('budget', 10n ** 9n),
  limit('tokens_per_minute', 10n ** 6n),
  limit('requests_per_minute', 60n),
  limit('concurrent_requests', 4n),
];

describe('betas in a header that let a model use more than the catalog says', () => {
  const long = { max_tokens: 100, messages: [{ role: 'user', content: 'x'.repeat(200_000) }] };
  const short = { max_tokens: 100, messages: [] };
  const ROWS: readonly (readonly [header: string, body: object, isRefused: boolean])[] = [
    ['context-1m-2025-08-07', long, true],
    ['claude-code-20250219, Context-1M-2025-08-07', long, true],
    ['context-1m-2025-08-07', short, false],
    ['context-50k-2025-08-07', long, false],
    ['context-management-2025-06-27,claude-code-20250219', long, false],
    ['output-300k-2026-03-24', { ...short, max_tokens: 300_000 }, true],
    ['output-300k-2026-03-24', short, false],
    ['output-128k-2025-02-19', { ...short, max_tokens: 1_000_000 }, true],
    ['context-1e400m-x,output-m-x,output--1k,context-,context', { ...long, max_tokens: 1_000_000 }, false],
  ];
  for (const [header, body, isRefused] of ROWS) {
    test(`${header} with ${JSON.stringify(body).length} bytes: ${isRefused ? 'refused' : 'held'}`, () => {
      const question = ask(PRINCIPAL, body, messages);
      const betaCeilings = readBetaCeilings(['fine-grained-tool-streaming-2025-05-14', header]);
      const bounds = betaCeilings === null ? question.bounds : { ...question.bounds, betaCeilings };
      const plan = planHolds({ ...question, bounds }, question.measure);
      assert.deepEqual(
        'kind' in plan ? [plan.kind, 'field' in plan ? plan.field : null] : null,
        isRefused ? ['not_safely_billable', 'anthropic-beta'] : null,
      );
    });
  }
});

describe('what a request holds', () => {
  const body = { max_tokens: 100, messages: [] };
  const bytes = BigInt(JSON.stringify(body).length);
  const price = bytes + 1_000n;

  test('in this order: a place, a request, tokens, budgets, and the wallet last', () => {
    assert.deepEqual(needsOf(ask({ ...PRINCIPAL, limits: ALL }, body)), [
      ['concurrent_requests', 1n],
      ['requests_per_minute', 1n],
      ['tokens_per_minute', bytes + 100n],
      ['budget', price],
      ['credit', price],
    ]);
  });

  test('a limit of another model does not apply', () => {
    const limits = [limit('requests_per_minute', 1n, 'sim/other'), limit('concurrent_requests', 1n, 'sim/small')];
    assert.deepEqual(needsOf(ask({ ...NOT_BILLED, limits }, body)), [['concurrent_requests', 1n]]);
  });

  test('a budget of an organization that is not billed holds the price where there is one, and nothing where there is not', () => {
    const question = ask({ ...NOT_BILLED, limits: [limit('budget', 10n ** 9n)] }, body);
    assert.deepEqual(needsOf(question), [['budget', price]]);
    const unpriced = { ...question, served: { ...question.served, worstPrice: new Map() } };
    assert.deepEqual(needsOf(unpriced), []);
  });

  describe('under a budget of an organization that is not billed', () => {
    const PRICED = priceOf({ input: '1', output: '10' });
    const DEARER = priceOf({ input: '2', output: '20', service_tiers: { priority: '2' } });
    const limited = { ...NOT_BILLED, limits: [limit('budget', 10n ** 15n)] };
    const holds = (body: object, prices: readonly (Price | null)[], model: Partial<Model> = {}) => {
      const question = ask(limited, body);
      const deployments = prices.map((price) => ({ price }) as Deployment);
      const served = {
        ...question.served,
        model: { ...MODEL, ...model },
        deployments: new Map([['chat_completions', deployments]]) as ServedModel['deployments'],
        worstPrice: new Map([['chat_completions' as const, worstOf(prices)]]),
      };
      const plan = planHolds({ ...question, served }, question.measure);
      return 'kind' in plan ? plan : plan.needs.map(({ amount }) => amount);
    };
    const bytesOf = (body: object): bigint => BigInt(JSON.stringify(body).length);
    const open = { messages: [] };
    const tiered = { messages: [], max_tokens: 5, service_tier: 'scale' };
    const ROWS: readonly (readonly [name: string, found: unknown, held: unknown])[] = [
      ['without a limit: what the model writes', holds(open, [PRICED]), [bytesOf(open) * 10n ** 6n + 10n ** 11n]],
      [
        'without a limit, of a model of which only the context is known: that',
        holds(open, [PRICED], { maxOutputTokens: null }),
        [bytesOf(open) * 10n ** 6n + 10n ** 12n],
      ],
      ['without any bound: nothing', holds(open, [PRICED], { maxOutputTokens: null, contextLength: null }), []],
      ['without any price: nothing', holds(open, [null]), []],
      [
        'where some have no price: what the others ask',
        holds({ max_tokens: 5, ...open }, [null, PRICED]),
        [bytesOf({ max_tokens: 5, ...open }) * 10n ** 6n + 5n * 10n ** 7n],
      ],
      [
        'what nobody has a price for: as it is rated, plainly',
        holds(tiered, [PRICED, DEARER]),
        [bytesOf(tiered) * 2n * 10n ** 6n + 5n * 2n * 10n ** 7n],
      ],
      [
        'what only some have a price for: the dearest of all, since any may serve it',
        holds({ ...tiered, service_tier: 'priority' }, [priceOf({ input: '5', output: '50' }), DEARER]),
        [bytesOf({ ...tiered, service_tier: 'priority' }) * 5n * 10n ** 6n + 5n * 5n * 10n ** 7n],
      ],
    ];
    for (const [name, found, held] of ROWS) test(name, () => assert.deepEqual(found, held));

    test('which counts all that own keys use, without a limit: what the model writes, too', () => {
      const question = ask(limited, open);
      const served = { ...question.served, deployments: new Map([['chat_completions', [ON_OWN_KEY]] as const]) };
      assert.deepEqual(needsOf({ ...question, served }), [['budget', bytesOf(open) * 10n ** 6n + 10n ** 11n]]);
    });
  });

  test('counting tokens holds a place and a request; images hold no tokens', () => {
    assert.deepEqual(needsOf(ask({ ...PRINCIPAL, limits: ALL }, body, countTokens)), [
      ['concurrent_requests', 1n],
      ['requests_per_minute', 1n],
    ]);
    const kinds = needsOf(ask({ ...PRINCIPAL, limits: ALL }, { n: 2, prompt: 'x' }, imageGenerations));
    assert.deepEqual(kinds.slice(2), [
      ['budget', 2_000n],
      ['credit', 2_000n],
    ]);
  });

  test('a limit that some provider passes over is none for whom it is the only one', () => {
    const deployments = [undefined, { ignores: ['max_completion_tokens'] }].map(
      (requests) => ({ price: priceOf({ input: '1', output: '10' }), provider: { requests } }) as unknown as Deployment,
    );
    const heard = (principal: Principal, limits: object, count = 2, cap: number | null = null) => {
      const question = ask(principal, { messages: [], ...limits });
      const model = { ...MODEL, maxCompletionTokensCap: cap };
      const served = {
        ...question.served,
        model,
        deployments: new Map([['chat_completions', deployments.slice(0, count)]]),
      };
      const asked = { ...question, served: served as unknown as ServedModel };
      const plan = planHolds(asked, asked.measure);
      return 'kind' in plan ? [plan.kind, 'field' in plan && plan.field] : plan.tokenBounds?.outputTokensMax;
    };
    assert.equal(heard(PRINCIPAL, { max_tokens: 7 }), 7);
    assert.equal(heard(PRINCIPAL, { max_tokens: 7, max_completion_tokens: 9 }), 9);
    assert.equal(heard(PRINCIPAL, { max_tokens: 9, max_completion_tokens: 7 }), 9);
    assert.equal(heard(PRINCIPAL, { max_completion_tokens: 7 }, 1), 7);
    assert.equal(heard(PRINCIPAL, { max_completion_tokens: 7 }, 2, 50), 50);
    assert.equal(heard(PRINCIPAL, { max_completion_tokens: 70 }, 2, 50), 70);
    assert.deepEqual(heard(PRINCIPAL, { max_completion_tokens: 7 }), ['not_safely_billable', 'max_tokens']);
    assert.equal(heard(NOT_BILLED, { max_completion_tokens: 7 }), undefined);
  });

  test('each text of a request for embeddings has the context for itself: it does not bound all of them', () => {
    const texts = { input: Array.from({ length: 30 }, () => 'x'.repeat(5_000)) };
    const { tokenBounds } = planOf(ask(PRINCIPAL, texts, embeddings));
    assert.deepEqual(tokenBounds, { inputTokensMax: JSON.stringify(texts).length, outputTokensMax: 0 });
    for (const input of [[Array.from({ length: 200_000 }, () => 1)], ['x'.repeat(200_000)], []]) {
      const bytes = JSON.stringify({ input }).length;
      assert.equal(planOf(ask(PRINCIPAL, { input }, embeddings)).tokenBounds?.inputTokensMax, bytes);
    }
  });

  test('the context bounds a request for embeddings of one text, in letters or in tokens', () => {
    const { contextLength } = ask(PRINCIPAL, {}, embeddings).served.model;
    for (const input of ['x'.repeat(200_000), Array.from({ length: 200_000 }, () => 123)])
      assert.equal(planOf(ask(PRINCIPAL, { input }, embeddings)).tokenBounds?.inputTokensMax, contextLength);
  });

  test('budgets that count all that own keys use hold nothing for counting tokens, which is free, and need no price', () => {
    for (const deployment of [ON_OWN_KEY, { ...ON_OWN_KEY, price: null }]) {
      const asked = ask({ ...PRINCIPAL, limits: [limit('budget', 10n ** 9n)] }, body, countTokens);
      const served = { ...asked.served, deployments: new Map([['count_tokens', [deployment]] as const]) };
      assert.deepEqual(needsOf({ ...asked, served }), []);
    }
  });

  test('under a limit on tokens: refused without a bound, above the limit, and without questions', () => {
    const limited = { ...NOT_BILLED, limits: [limit('tokens_per_minute', 5_000n)] };
    assert.deepEqual(refusalOf(ask(limited, { messages: [] })), {
      kind: 'traffic_token_bound_required',
      field: 'max_tokens',
    });
    const above = refusalOf(ask(limited, { messages: [], max_tokens: 6_000 }));
    assert.ok(
      above.kind === 'traffic_token_bound_required' &&
        above.field === 'max_tokens' &&
        above.result?.['limit'] === 5_000,
    );
    const long = refusalOf(ask(limited, { messages: ['x'.repeat(6_000)], max_tokens: 5 }));
    assert.ok(long.kind === 'traffic_token_bound_required' && long.field === 'messages');
    assert.deepEqual(refusalOf(ask(limited, { state: 's', questions: {} }, systemone)), {
      kind: 'traffic_token_bound_required',
      field: 'questions',
    });
    assert.equal(planOf(ask(limited, { state: 's', questions: { q: 1 } }, systemone)).needs.length, 1);
  });

  test('a billed organization without a wallet is still being made', () => {
    assert.deepEqual(refusalOf(ask({ ...PRINCIPAL, walletId: null }, body)), { kind: 'principal_provisioning' });
  });
});

/** A worker pool that counts so many tokens, or has no room. */
function workersOf(answer: WorkerResult<{ inputTokens: number | null; outputTokens: null }>): {
  workers: WorkerPool;
  asked: () => number;
} {
  let asked = 0;
  const run = () => {
    asked += 1;
    return Promise.resolve(answer);
  };
  return { workers: { run } as unknown as WorkerPool, asked: () => asked };
}

const BUSY = { ok: false, reason: 'queue_full' } as const;

async function admitWith(
  store: SimulatedLeaseStore,
  question: AdmissionParams,
  workers: WorkerPool,
): Promise<Admission | Refusal> {
  const [leases = store.process()] = store.processes;
  const parts: AdmissionParts = {
    leases,
    workers,
    counts: new OrganizationQueues(COUNTS),
    clock: { nowMs: () => 0, monotonicMs: () => store.time.nowMs },
  };
  let result: Admission | Refusal | null = null;
  void Promise.resolve(admit(question, parts)).then((answer) => {
    result = answer;
  });
  await store.time.run(store.time.nowMs + 5_000);
  assert.ok(result !== null, 'it is answered');
  return result;
}

describe('near the edge', () => {
  const body = { max_tokens: 10, messages: [{ role: 'user', content: 'x'.repeat(900) }] };

  test('the exact count decides, too, where what other processes have of the rest cannot be asked for', async () => {
    const store = new SimulatedLeaseStore();
    const wallet = store.quota('credit', 'w', 100n);
    const [, other] = [store.process(), store.process()];
    const held = Promise.resolve(other.holdAll([{ quota: wallet, amount: 100n }]));
    await store.time.run(100);
    assert.ok(Array.isArray(await held));
    store.deposit('w', 500n);
    store.notifyMs = 60_000;
    const { workers } = workersOf({ ok: true, value: { inputTokens: 300, outputTokens: null } });
    assert.ok((await admitWith(store, ask(PRINCIPAL, body), workers)) instanceof Admission);
  });

  test('the exact count is the bound where the bytes are too many, and the hold is smaller', async () => {
    const store = new SimulatedLeaseStore();
    store.quota('credit', 'w', 500n);
    const { workers } = workersOf({ ok: true, value: { inputTokens: 300, outputTokens: null } });
    const admission = await admitWith(store, ask(PRINCIPAL, body), workers);
    assert.ok(admission instanceof Admission);
    assert.deepEqual([admission.hold, admission.tokenBounds?.inputTokensMax], [400n, 300]);
  });

  test('a busy pool leaves the bound by bytes, and the refusal', async () => {
    const store = new SimulatedLeaseStore();
    store.quota('credit', 'w', 500n);
    const admission = await admitWith(store, ask(PRINCIPAL, body), workersOf(BUSY).workers);
    assert.ok('kind' in admission && admission.kind === 'insufficient_credit');
  });

  test('what could not be afforded with no input at all is not counted', async () => {
    const store = new SimulatedLeaseStore();
    store.quota('credit', 'w', 99n);
    const { workers, asked } = workersOf({ ok: true, value: { inputTokens: 1, outputTokens: null } });
    const admission = await admitWith(store, ask(PRINCIPAL, body), workers);
    assert.ok('kind' in admission && admission.kind === 'insufficient_credit');
    assert.equal(asked(), 0);
  });

  test('a limit on tokens that is below the bytes and above the count', async () => {
    const store = new SimulatedLeaseStore();
    store.quota('tokens_per_minute', 'tokens_per_minute', 600n);
    const { workers } = workersOf({ ok: true, value: { inputTokens: 300, outputTokens: null } });
    const limited = { ...NOT_BILLED, limits: [limit('tokens_per_minute', 600n)] };
    assert.ok((await admitWith(store, ask(limited, body), workers)) instanceof Admission);
    assert.ok('kind' in (await admitWith(store, ask(limited, body), workersOf(BUSY).workers)));
  });
});

describe('the end of an admission', () => {
  async function admitted(): Promise<{ store: SimulatedLeaseStore; admission: Admission }> {
    const store = new SimulatedLeaseStore();
    for (const { kind, id, amount } of ALL) store.quota(kind, id, amount);
    store.quota('credit', 'w', 10n ** 9n);
    const admission = await admitWith(
      store,
      ask({ ...PRINCIPAL, limits: ALL }, { max_tokens: 100, messages: [] }),
      workersOf(BUSY).workers,
    );
    assert.ok(admission instanceof Admission);
    assert.deepEqual(admission.budgets, ['budget']);
    return { store, admission };
  }

  async function left({ store }: { store: SimulatedLeaseStore }): Promise<readonly bigint[]> {
    void store.processes[0]?.returnAll();
    await store.time.run(store.time.nowMs + 1_000);
    return ['concurrent_requests', 'requests_per_minute', 'tokens_per_minute', 'budget', 'w'].map((key) =>
      store.leased(key),
    );
  }

  test('leaves used what the execution used', async () => {
    const world = await admitted();
    world.admission.release({ charge: 40n, budgetUse: 40n, tokens: 25 });
    assert.deepEqual(await left(world), [0n, 1n, 25n, 40n, 40n]);
    assert.throws(() => world.admission.release('refused'), /once/);
  });

  test('of unknown tokens leaves all used that were held', async () => {
    const world = await admitted();
    const tokens = BigInt((world.admission.tokenBounds?.inputTokensMax ?? 0) + 100);
    world.admission.release({ charge: 0n, budgetUse: 0n, tokens: null });
    assert.deepEqual(await left(world), [0n, 1n, tokens, 0n, 0n]);
  });

  test('that was refused after all leaves nothing used', async () => {
    const world = await admitted();
    world.admission.release('refused');
    assert.deepEqual(await left(world), [0n, 0n, 0n, 0n, 0n]);
  });

  test('whose record is lost leaves everything held but its place', async () => {
    const world = await admitted();
    world.admission.release('unrecorded');
    const [places, ...others] = await left(world);
    assert.equal(places, 0n);
    assert.ok(others.every((amount) => amount > 0n));
  });

  test('of own keys, for which no wallet holds anything: what a budget counts is posted to it', async () => {
    const store = new SimulatedLeaseStore();
    store.quota('budget', 'budget', 10n ** 12n);
    const asked = ask({ ...PRINCIPAL, limits: [limit('budget', 10n ** 12n)] }, { max_tokens: 100, messages: [] });
    const served = { ...asked.served, deployments: new Map([['chat_completions', [ON_OWN_KEY]] as const]) };
    const admission = await admitWith(store, { ...asked, served }, workersOf(BUSY).workers);
    assert.ok(admission instanceof Admission);
    assert.deepEqual([admission.hold, admission.budgets], [0n, ['budget']]);
  });

  test('a budget is never charged with more than was held from it', async () => {
    const { admission } = await admitted();
    assert.deepEqual(
      [admission.budgetUse(picoUsd(7n)), admission.budgetUse(picoUsd(10n ** 9n)), admission.budgetUse(null)],
      [7n, admission.hold, 0n],
    );
  });

  test('tokens are known where they were reported or nobody worked', () => {
    const usage = { ...NO_COUNTS, inputTokens: 3, outputTokens: 4 };
    assert.equal(tokensUsed('completed', usage), 7);
    assert.equal(tokensUsed('completed', { ...usage, outputTokens: null }), null);
    assert.equal(tokensUsed('no_reply', null), null);
    assert.equal(tokensUsed('connect_failed', null), 0);
  });
});
