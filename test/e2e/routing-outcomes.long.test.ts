// Real outcomes of a weak and a strong model, routed by a judge of known accuracy through a whole installation: what
// the facts and the routing report say of spend, baseline and savings equals a recomputation from the provider's own
// log. Without the outcomes a small set of our own takes the same path.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { createClickHouse, selectRows } from '../../src/storage/clickhouse/clickhouse.ts';
import { routingReport } from '../../src/storage/clickhouse/reports/routing-report.ts';
import { ROUTING_PRICES, type RoutingInstallation, startRoutingInstallation } from '../support/routing-installation.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { decimalOfPico } from '../support/test-configuration.ts';

/** Whether each model answered a prompt well. */
interface Outcome {
  readonly prompt: string;
  readonly weak: boolean;
  readonly strong: boolean;
}

const ACCURACY = 0.8;
const OUTCOMES_MAX = 240;
const AT_ONCE = 6;

interface Answered extends Outcome {
  readonly truth: 'light' | 'strong';
  readonly tier: string | undefined;
  readonly model: string | null;
}

interface Sums {
  readonly requests: number;
  readonly spend: string;
  readonly baseline: string;
  readonly savings: string;
}

/** The cheapest tier that answers well; where neither does, nothing is gained by the expensive one. */
function truthOf({ weak, strong }: Outcome): Answered['truth'] {
  return !weak && strong ? 'strong' : 'light';
}

async function answerAll(routing: RoutingInstallation, outcomes: readonly Outcome[]): Promise<Answered[]> {
  const waiting = [...outcomes.entries()];
  const answered: Answered[] = [];
  const client = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, outcome] = next;
      const truth = truthOf(outcome);
      const steering =
        `[[sim/systemone: tier.truth=${truth} tier.accuracy=${ACCURACY} kind=prose]] [[sim/text: ` +
        `tokens=${10 + (index % 40)}]]`;
      const messages = [{ role: 'user', content: `${outcome.prompt}\n${steering}` }];
      const answer = await routing.ask({
        headers: { 'x-session-id': randomUUID() },
        body: { messages, max_tokens: 100 },
      });
      assert.equal(answer.status, 200, answer.body);
      const { classified_tier: tier } = await routing.routeOf(answer.executionId);
      answered.push({ ...outcome, truth, tier, model: answer.model });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  return answered;
}

/** From what the provider says it served, and the price list. */
function recompute(routing: RoutingInstallation): Sums {
  let [requests, spend, baseline] = [0, 0n, 0n];
  for (const call of routing.provider.ends()) {
    if (call.api !== 'chat_completions') continue;
    const { input, output } = call.model === 'large-1' ? ROUTING_PRICES.large : ROUTING_PRICES.small;
    requests += 1;
    spend += BigInt(call.promptTokens) * input + BigInt(call.completionTokens) * output;
    baseline +=
      BigInt(call.promptTokens) * ROUTING_PRICES.large.input +
      BigInt(call.completionTokens) * ROUTING_PRICES.large.output;
  }
  return {
    requests,
    spend: decimalOfPico(spend),
    baseline: decimalOfPico(baseline),
    savings: decimalOfPico(baseline - spend),
  };
}

async function readFacts(dataDir: string): Promise<{ facts: Sums; report: Sums }> {
  const client = await createClickHouse({ directory: join(dataDir, 'clickhouse') }, systemClock);
  try {
    const [row] = await selectRows<{ requests: string; spend: string; baseline: string; savings: string }>(
      client,
      `SELECT toString(count()) AS requests, toString(sum(total_cost)) AS spend,
        toString(sum(route_baseline_cost)) AS baseline,
              toString(sum(route_baseline_cost) - sum(total_cost)) AS savings FROM request_facts FINAL WHERE routed`,
    );
    const untilMs = systemClock.nowMs() + 60_000;
    const window = { fromMs: untilMs - 7_200_000, untilMs, granularity: 'hour', timeZone: 'UTC' } as const;
    const { totals } = await routingReport(client, {
      scope: { organizationId: null },
      filters: {},
      window,
      recentCorrections: false,
    });
    return {
      facts: {
        requests: Number(row?.requests),
        spend: row?.spend ?? '',
        baseline: row?.baseline ?? '',
        savings: row?.savings ?? '',
      },
      report: {
        requests: totals.requests,
        spend: totals.spend_usd,
        baseline: totals.baseline_cost_usd,
        savings: totals.savings_usd,
      },
    };
  } finally {
    await client.close();
  }
}

async function check(outcomes: readonly Outcome[], tell: (text: string) => void): Promise<void> {
  const routing = await startRoutingInstallation();
  try {
    const answered = await answerAll(routing, outcomes);
    const { facts, report } = await routing.stopAndRead(readFacts);
    const expected = recompute(routing);
    assert.equal(expected.requests, outcomes.length);
    assert.deepEqual(facts, expected);
    assert.deepEqual(report, expected);
    const share = (count: (one: Answered) => boolean) => answered.filter(count).length / answered.length;
    const right = share(({ tier, truth }) => tier === truth);
    assert.ok(Math.abs(right - ACCURACY) < 0.1, `the judge was right ${right} of the time`);
    const quality = share(({ model, weak, strong }) => (model === 'sim/large' ? strong : weak));
    const figures = {
      right,
      quality,
      weakAlone: share(({ weak }) => weak),
      strongAlone: share(({ strong }) => strong),
      ...expected,
    };
    tell(JSON.stringify(figures));
  } finally {
    await routing.stop();
  }
}

const MODELS = { weak: 'mistralai/Mixtral-8x7B-Instruct-v0.1', strong: 'gpt-4-1106-preview' };

function readOutcomes(directory: string): Outcome[] {
  const files = ['routellm-mmlu', 'routellm-gsm8k'].flatMap((folder) =>
    readdirSync(join(directory, folder)).map((name) => join(directory, folder, name)),
  );
  const perFile = Math.ceil(OUTCOMES_MAX / files.length);
  return files.flatMap((file) => outcomesIn(readFileSync(file, 'utf8')).slice(0, perFile)).slice(0, OUTCOMES_MAX);
}

function outcomesIn(csv: string): Outcome[] {
  const [header = [], ...rows] = parseCsv(csv);
  const column = (name: string) => header.indexOf(name);
  return rows.map((row) => ({
    prompt: row[column('prompt')] ?? '',
    weak: row[column(MODELS.weak)] === 'True',
    strong: row[column(MODELS.strong)] === 'True',
  }));
}

/** RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== ',') rows.push([]);
  }
  return rows.filter((row) => row.length > 1);
}

describe('spend, baseline and savings of routed requests', () => {
  const directory = sharedAssets('routing');
  test('with real outcomes', { skip: directory === null && 'the outcomes are not there' }, async (context) => {
    const outcomes = readOutcomes(directory ?? '');
    assert.equal(outcomes.length, OUTCOMES_MAX);
    assert.ok(outcomes.some((one) => truthOf(one) === 'strong') && outcomes.every(({ prompt }) => prompt !== ''));
    await check(outcomes, (text) => context.diagnostic(text));
  });

  test('with outcomes of our own', {
    skip: directory !== null && 'the real ones take the same path',
  }, async (context) => {
    const outcomes = Array.from({ length: 60 }, (_, index) => ({
      prompt: `What is ${index} times ${index + 7}?`,
      weak: index % 3 !== 0,
      strong: index % 11 !== 0,
    }));
    await check(outcomes, (text) => context.diagnostic(text));
  });
});
