// A race of conversations over four gateway processes: requests of one turn at once, tool loops behind them. However
// they meet, a turn has one model and one question to the classifier. By hand: `node test/e2e/routing-race-run.ts
// --seed 1 --conversations 3000`.

import { parseArgs } from 'node:util';
import { seededRandom } from '../support/byte-splits.ts';
import { ROUTING_POLICY, type RoutingInstallation, startRoutingInstallation } from '../support/routing-installation.ts';
import { waitFor } from '../support/waiting.ts';

const GATEWAY_PROCESSES = 4;
const TURNS = 2;
/** Requests of one turn that are sent at once. */
const AT_ONCE = 3;
/** And one after the other, as a tool loop sends them. */
const LOOPED = 2;
const CONVERSATIONS_AT_ONCE = 24;

export interface RaceReport {
  readonly turns: number;
  readonly requests: number;
  readonly classifierCalls: number;
  /** Turns whose requests were served by more than one process. */
  readonly turnsOverProcesses: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

interface SeenTurn {
  readonly name: string;
  readonly expected: string;
  readonly models: readonly string[];
  readonly executions: readonly string[];
}

export async function runRace(options: { seed: number; conversations: number }): Promise<RaceReport> {
  // A busy machine is no reason to fail: the classifier has all the time that it may be given.
  const routing = await startRoutingInstallation({
    gatewayProcesses: GATEWAY_PROCESSES,
    policy: ROUTING_POLICY.replace('timeout_ms: 5000', 'timeout_ms: 30000'),
  });
  try {
    const seen: SeenTurn[] = [];
    const random = seededRandom(options.seed);
    const plans = Array.from({ length: options.conversations }, (_, index) =>
      planOf(`${options.seed}-${index}`, random),
    );
    const client = async (): Promise<void> => {
      for (let plan = plans.shift(); plan !== undefined; plan = plans.shift())
        seen.push(...(await converse(routing, plan)));
    };
    await Promise.all(Array.from({ length: CONVERSATIONS_AT_ONCE }, client));
    return await account(routing, seen);
  } finally {
    await routing.stop();
  }
}

const MODELS = { light: 'sim/small', strong: 'sim/large' } as const;

interface Plan {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tiers: readonly (keyof typeof MODELS)[];
}

function planOf(name: string, random: () => number): Plan {
  const tiers = Array.from({ length: TURNS }, (): keyof typeof MODELS => (random() < 0.5 ? 'light' : 'strong'));
  // Some clients name their session, others are known by their first message.
  return { name, headers: random() < 0.5 ? { 'x-session-id': `race-${name}` } : {}, tiers };
}

async function converse(routing: RoutingInstallation, { name, headers, tiers }: Plan): Promise<SeenTurn[]> {
  const turns: SeenTurn[] = [];
  let messages: object[] = [];
  for (const [index, tier] of tiers.entries()) {
    const turn = `<turn ${name} ${index}>`;
    messages = [
      ...messages,
      {
        role: 'user',
        content:
          `${turn} of a conversation that is a race [[sim/systemone: tier=${tier}:0.95 kind=prose ` +
          `correction=0.1]]`,
      },
    ];
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, () => routing.ask({ headers, body: { messages } })),
    );
    for (let round = 0; round < LOOPED; round += 1) {
      const id = `call_${round}`;
      const called = {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'run', arguments: '{}' } }],
      };
      messages = [...messages, called, { role: 'tool', tool_call_id: id, content: 'done' }];
      answers.push(await routing.ask({ headers, body: { messages } }));
    }
    messages = [...messages, { role: 'assistant', content: 'That is it.' }];
    turns.push({
      name: turn,
      expected: MODELS[tier],
      models: answers.map(({ status, model, body }) => model ?? `${status} ${body.slice(0, 200)}`),
      executions: answers.map(({ executionId }) => executionId),
    });
  }
  return turns;
}

async function account(routing: RoutingInstallation, seen: readonly SeenTurn[]): Promise<RaceReport> {
  const problems: string[] = [];
  const calls = new Map<string, number>();
  for (const { body } of routing.judged()) {
    const { state } = JSON.parse(body.toString('utf8')) as { state: { latest_message: string } };
    const turn = /<turn [^>]+>/.exec(state.latest_message)?.[0] ?? 'no turn';
    calls.set(turn, (calls.get(turn) ?? 0) + 1);
  }
  const records = await readRecords(routing, seen);
  let turnsOverProcesses = 0;
  const reasons: Record<string, number> = {};
  for (const turn of seen) {
    const models = [...new Set(turn.models)];
    if (models.length !== 1 || models[0] !== turn.expected)
      problems.push(`${turn.name} expected ${turn.expected}, served by ${models.join(' and ')}`);
    if (calls.get(turn.name) !== 1)
      problems.push(`${turn.name}: the classifier was asked ${calls.get(turn.name) ?? 0} times`);
    const own = turn.executions.flatMap((id) => records.get(id) ?? []);
    if (new Set(own.map(({ epoch }) => epoch)).size > 1) turnsOverProcesses += 1;
    const asked = own.filter(({ has_call }) => has_call).length;
    if (asked !== 1) problems.push(`${turn.name}: ${asked} records have the classifier's call`);
    for (const { reason } of own) reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  const requests = seen.reduce((sum, { models }) => sum + models.length, 0);
  return {
    turns: seen.length,
    requests,
    classifierCalls: routing.judged().length,
    turnsOverProcesses,
    reasons,
    problems: problems.slice(0, 20),
  };
}

interface RecordRow {
  readonly id: string;
  readonly epoch: string;
  readonly reason: string;
  readonly has_call: boolean;
}

async function readRecords(
  { postgres }: RoutingInstallation,
  seen: readonly SeenTurn[],
): Promise<Map<string, RecordRow>> {
  const ids = seen.flatMap(({ executions }) => executions).filter((id) => id !== '');
  const read = async () =>
    (
      await postgres.query<RecordRow>(
        `SELECT id, epoch, model_route ->> 'reason' AS reason, model_route -> 'classifier' IS NOT NULL AS has_call
          FROM generations WHERE id = ANY ($1::uuid[]) AND ended_at IS NOT NULL`,
        [ids],
      )
    ).rows;
  const rows = await waitFor('every execution to be posted', read, (found) => found.length === ids.length, 60_000);
  return new Map(rows.map((row) => [row.id, row]));
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seed: { type: 'string', default: '1' }, conversations: { type: 'string', default: '3000' } },
  });
  const report = await runRace({ seed: Number(values.seed), conversations: Number(values.conversations) });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = report.problems.length === 0 ? 0 : 1;
}
