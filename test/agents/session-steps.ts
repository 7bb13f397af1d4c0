// One session with one agent: a prompt, a tool call, a follow-up; each step says what is wrong with it.

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from './agent.ts';
import { AgentSession } from './agent-session.ts';
import { AGENTS_KEY, type AgentsGateway } from './agents-gateway.ts';
import { lastWords } from './bounded-process.ts';
import { checkGeneration, leftAfterTheEnd, offeredTools, simulatedText, tellsModel } from './exchange-checks.ts';
import { whyNotRunnable } from './install-agents.ts';
import type { TappedExchange } from './wire-tap.ts';

const STEPS = ['prompt', 'tool call', 'follow-up'] as const;

const FIRST_PROMPT = 'Say hello to the gateway.';
const TOOL_PROMPT = 'Now look at the note.';
const FOLLOW_UP = 'That is wrong. Read it again and answer differently.';

export interface StepOutcome {
  readonly step: (typeof STEPS)[number];
  readonly state: 'ok' | 'failed' | 'not run';
  readonly failures: readonly string[];
  /** Worth knowing and no failure. */
  readonly notes: readonly string[];
  /** Requests to the agent's generation endpoint, and what they cost together. */
  readonly requests: number;
  readonly costPico: bigint;
}

interface Turn {
  /**
   * Requests that were answered for the conversation itself: they offer tools, unlike titles and other side business.
   */
  readonly main: readonly TappedExchange[];
  readonly outcome: Omit<StepOutcome, 'step' | 'state'>;
}

export async function runSession(gateway: AgentsGateway, agent: Agent, directory: string): Promise<StepOutcome[]> {
  const session = new Session(gateway, agent, directory);
  const unusable = await whyNotRunnable(agent, session.env);
  if (unusable !== null)
    return STEPS.map((step, index) => ({
      ...notRun(step),
      failures: index === 0 ? [`not runnable here: ${unusable}`] : [],
    }));
  const outcomes: StepOutcome[] = [];
  for (const step of STEPS) {
    // What comes after a failure would only repeat it.
    const failed = outcomes.some(({ state }) => state !== 'ok');
    outcomes.push(failed ? notRun(step) : await session.take(step));
  }
  return outcomes;
}

function notRun(step: StepOutcome['step']): StepOutcome {
  return { step, state: 'not run', failures: [], notes: [], requests: 0, costPico: 0n };
}

class Session {
  readonly #gateway: AgentsGateway;
  readonly #agent: Agent;
  readonly #session: AgentSession;
  readonly #canary = `canary-${randomBytes(8).toString('hex')}`;
  /** What the conversation holds so far, which each later request must tell the model again. */
  readonly #history: string[] = [];
  #tools: readonly string[] = [];

  constructor(gateway: AgentsGateway, agent: Agent, directory: string) {
    const { tap, network } = gateway;
    this.#gateway = gateway;
    this.#agent = agent;
    this.#session = new AgentSession({ agent, directory, tap, network, key: AGENTS_KEY });
    writeFileSync(join(this.#session.project, 'note.txt'), `${this.#canary}\n`);
  }

  get env(): NodeJS.ProcessEnv {
    return this.#session.env;
  }

  async take(step: StepOutcome['step']): Promise<StepOutcome> {
    const turn = await {
      prompt: () => this.#prompt(),
      'tool call': () => this.#toolCall(),
      'follow-up': () => this.#followUp(),
    }[step]();
    return { step, state: turn.failures.length === 0 ? 'ok' : 'failed', ...turn, failures: countEqual(turn.failures) };
  }

  async #prompt(): Promise<Turn['outcome']> {
    const turn = await this.#ask(FIRST_PROMPT);
    this.#tools = turn.main[0] === undefined ? [] : offeredTools(turn.main[0]);
    return turn.outcome;
  }

  async #toolCall(): Promise<Turn['outcome']> {
    const name = this.#tools.find((tool) => Object.hasOwn(this.#agent.shellTools, tool));
    if (name === undefined) return this.#refuse(`no shell tool that we know among ${this.#tools.join(', ')}`);
    const wanted = this.#agent.shellTools[name]?.('cat note.txt && cp note.txt seen.txt');
    const directive = `[[sim: tool_call=${name} tool_arguments=${encodeURIComponent(JSON.stringify(wanted))}]]`;
    const { main, outcome } = await this.#ask(TOOL_PROMPT, directive);
    const failures = [...outcome.failures];
    const seen = join(this.#session.project, 'seen.txt');
    if (!existsSync(seen) || readFileSync(seen, 'utf8').trim() !== this.#canary)
      failures.push(`the command of the ${name} tool was not run`);
    if (main.length < 2) failures.push(`${main.length} requests, expected one for the call and one with its result`);
    const last = main.at(-1);
    if (last === undefined || !tellsModel(last, this.#canary))
      failures.push("the tool's result did not go back to the model");
    this.#history.push(this.#canary);
    return { ...outcome, failures, notes: [`tool ${name}`, ...outcome.notes] };
  }

  async #followUp(): Promise<Turn['outcome']> {
    return (await this.#ask(FOLLOW_UP)).outcome;
  }

  #refuse(failure: string): Turn['outcome'] {
    return { failures: [failure], notes: [], requests: 0, costPico: 0n };
  }

  /** Runs the agent once and checks what holds for every step. */
  async #ask(words: string, directive = ''): Promise<Turn> {
    const { provider, network } = this.#gateway;
    const prompt = directive === '' ? words : `${words} ${directive}`;
    const { result, output, exchanges, generations } = await this.#session.ask(prompt);
    const failures: string[] = [];
    if (result.code !== 0)
      failures.push(`${result.timedOut ? 'took too long' : `ended with ${result.code}`}: ${lastWords(result)}`);
    if (generations.length === 0)
      return {
        main: [],
        outcome: {
          ...this.#refuse('no request reached the gateway'),
          failures: [...failures, 'no request reached the gateway'],
        },
      };
    // Calls that never got to the provider have no end there to wait for.
    if (generations.some(({ status }) => status === 200)) await provider.lastEnd();
    let costPico = 0n;
    for (const exchange of generations) {
      const checked = await checkGeneration(this.#gateway, exchange);
      failures.push(...checked.failures);
      costPico += checked.costPico ?? 0n;
    }
    const main = generations.filter((exchange) => offeredTools(exchange).length > 0);
    failures.push(...this.#checkConversation(prompt, main, output.text));
    if (output.sessionId === null) failures.push('it named no session');
    const notes = this.#describeOthers(exchanges.filter((exchange) => !generations.includes(exchange)));
    const side = generations.length - main.length;
    if (side > 0) notes.push(`${side} side ${side === 1 ? 'request' : 'requests'}`);
    if (generations.some(leftAfterTheEnd)) notes.push('hung up right after the last event');
    const outside = network.takeAttempts();
    if (outside.length > 0) notes.push(`asked for ${outside.join(', ')} (refused)`);
    return { main, outcome: { failures, notes, requests: generations.length, costPico } };
  }

  /** The answer that the model gave is the one that the user sees, and the model was told all that was said before. */
  #checkConversation(prompt: string, main: readonly TappedExchange[], shown: string): string[] {
    const failures: string[] = [];
    const last = main.at(-1);
    if (last === undefined) return ['no request with tools: it is not the conversation'];
    const answer = simulatedText(last);
    if (!shown.includes(answer))
      failures.push(`shows ${JSON.stringify(shown.slice(0, 200))}, and not the model's ${JSON.stringify(answer)}`);
    for (const said of [...this.#history, prompt]) {
      if (!main.every((exchange) => tellsModel(exchange, said)))
        failures.push(`the model was not told ${JSON.stringify(said)}`);
    }
    this.#history.push(prompt, answer);
    return failures;
  }

  /** Calls beside the generations: what is refused is worth a note. */
  #describeOthers(others: readonly TappedExchange[]): string[] {
    return countEqual(
      others.map((exchange) => {
        const { method, path, status } = exchange;
        return `${method} ${path} ${status}${this.#agent.isExpectedRefusal(exchange) ? ' (as it should be)' : ''}`;
      }),
    );
  }
}

/** An agent that tries again fails the same way each time. */
function countEqual(lines: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].map(([line, count]) => (count === 1 ? line : `${count} x ${line}`));
}
