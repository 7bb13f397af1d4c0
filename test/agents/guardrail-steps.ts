// What an agent goes through behind guardrails: a loop of tools with cloaked addresses, a further turn, a block within
// a stream, a blocked request; each step says what is wrong with it.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillModel, findModelHole } from '../support/body-splices.ts';
import { SEAL, SIGNATURE } from '../support/tool-loop-replies.ts';
import type { Agent } from './agent.ts';
import { type AgentRun, AgentSession } from './agent-session.ts';
import { AGENTS_KEY, PROVIDER_MODEL } from './agents-gateway.ts';
import { lastWords } from './bounded-process.ts';
import { offeredTools } from './exchange-checks.ts';
import { type GuardedGateway, REFUSED_WORD } from './guarded-gateway.ts';
import { whyNotRunnable } from './install-agents.ts';
import { CALLS, CONTACT_FILE, PROMPTS, SEEN_FILE } from './loop-provider.ts';
import type { TappedExchange } from './wire-tap.ts';

const ASKED = 'ada.lovelace@analytical.example';
const TOLD = 'charles.babbage@engine.example';
const LOOP_PROMPT = `${PROMPTS.loop} of ${ASKED} with your shell.`;
const ANSWER = `Found: ${ASKED} knows ${TOLD}.`;
const ADDRESS = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/y;

/** Of a stream that is blocked in its middle. */
const BEGUN_BYTES_MIN = 10_000;

export interface GuardedOutcome {
  readonly step: string;
  readonly failures: readonly string[];
  readonly notes: readonly string[];
  readonly requests: number;
}

export async function runGuardedSession(
  gateway: GuardedGateway,
  agent: Agent,
  directory: string,
): Promise<GuardedOutcome[]> {
  gateway.provider.agent = agent;
  const session = new GuardedSession(gateway, agent, directory);
  const unusable = await whyNotRunnable(agent, session.env);
  if (unusable !== null) return [{ step: 'all', failures: [`not runnable here: ${unusable}`], notes: [], requests: 0 }];
  return [await session.loop(), await session.again(), await session.blockedReply(), await session.blockedRequest()];
}

/** A request as the agent sent it, and as the provider got it. */
interface SeenRequest {
  readonly exchange: TappedExchange;
  readonly got: string;
}

class GuardedSession {
  readonly #gateway: GuardedGateway;
  readonly #agent: Agent;
  readonly #directory: string;
  readonly #session: AgentSession;
  /** By placeholder; the same in every request. */
  readonly #values = new Map<string, string>();
  /** The conversation as the provider was last told it. */
  #told: readonly string[] = [];

  constructor(gateway: GuardedGateway, agent: Agent, directory: string) {
    this.#gateway = gateway;
    this.#agent = agent;
    this.#directory = directory;
    this.#session = this.#newSession('loop');
  }

  get env(): NodeJS.ProcessEnv {
    return this.#session.env;
  }

  #newSession(name: string): AgentSession {
    const { tap, network } = this.#gateway;
    const directory = join(this.#directory, name);
    mkdirSync(directory);
    const session = new AgentSession({ agent: this.#agent, directory, tap, network, key: AGENTS_KEY });
    writeFileSync(join(session.project, CONTACT_FILE), `asked ${TOLD}\n`);
    return session;
  }

  async loop(): Promise<GuardedOutcome> {
    const { run, seen, failures } = await this.#ask(this.#session, LOOP_PROMPT);
    const written = join(this.#session.project, SEEN_FILE);
    const lines = existsSync(written) ? readFileSync(written, 'utf8').trim().split('\n') : [];
    if (lines.length !== CALLS || lines.some((line) => line !== ASKED))
      failures.push(`its shell was told ${JSON.stringify(lines)}, not the address ${CALLS} times`);
    if (seen.length !== CALLS + 1) failures.push(`${seen.length} requests of the conversation, not ${CALLS + 1}`);
    failures.push(...this.#checkAnswer(run, seen));
    const notes = this.#checkThinking(seen.at(-1), failures);
    return { step: 'cloaked loop', failures, notes, requests: run.generations.length };
  }

  /** The agent tells the provider again what it was shown, with values; the provider sees the placeholders again. */
  async again(): Promise<GuardedOutcome> {
    const { run, seen, failures } = await this.#ask(this.#session, `${PROMPTS.again}.`);
    failures.push(...this.#checkAnswer(run, seen));
    const last = seen.at(-1)?.got ?? '';
    const answer = [...this.#values].reduce(
      (text, [placeholder, value]) => text.replaceAll(value, placeholder),
      ANSWER,
    );
    if (!last.includes(answer)) failures.push('the provider was not told its own answer again');
    return { step: 'next turn', failures, notes: [], requests: run.generations.length };
  }

  async blockedReply(): Promise<GuardedOutcome> {
    const session = this.#newSession('reply');
    const { run, seen, failures } = await this.#ask(session, `${PROMPTS.word}.`, false);
    // Claude Code asks once more without a stream when no part of a reply was complete; that is blocked as a whole.
    const again = seen.slice(1).filter(({ exchange }) => exchange.status !== 400 || !this.#agent.asksAgainUnstreamed);
    if (seen.length === 0 || seen.length > 2 || again.length > 0)
      failures.push(`it asked ${seen.length} times: ${seen.map(({ exchange }) => exchange.status).join(' ')}`);
    if (seen[0] !== undefined && (seen[0].exchange.status !== 200 || !seen[0].exchange.complete))
      failures.push(`it got ${seen[0].exchange.status}, ${seen[0].exchange.complete ? 'whole' : 'cut'}`);
    if ((seen[0]?.exchange.responseBody.length ?? 0) < BEGUN_BYTES_MIN) failures.push('it got no part of the reply');
    failures.push(...this.#checkShown(run, 'blocked the reply'));
    const notes = [ended(run), ...(seen.length > 1 ? ['asked once more, unstreamed'] : [])];
    return { step: 'blocked reply', failures, notes, requests: run.generations.length };
  }

  async blockedRequest(): Promise<GuardedOutcome> {
    const session = this.#newSession('request');
    const before = this.#gateway.upstream.requests.length;
    const run = await session.ask(`Tell me about ${REFUSED_WORD}.`);
    const failures = this.#checkShown(run, 'blocked this request');
    const main = run.generations.filter((exchange) => offeredTools(exchange).length > 0);
    if (main.length !== 1) failures.push(`it asked ${main.length} times`);
    if (main.some(({ status }) => status !== 400))
      failures.push(`it got ${main.map(({ status }) => status).join(' ')}`);
    const sent = this.#gateway.upstream.requests.slice(before).filter(({ body }) => body.includes(REFUSED_WORD));
    if (sent.length > 0) failures.push('the provider was sent what is blocked');
    return { step: 'blocked request', failures, notes: [ended(run)], requests: run.generations.length };
  }

  /** Runs the agent, and checks that the provider saw what the agent said with placeholders in it, and no more. */
  async #ask(session: AgentSession, prompt: string, mustSucceed = true) {
    const { upstream } = this.#gateway;
    const before = upstream.requests.length;
    const run = await session.ask(prompt);
    const failures: string[] = [];
    if (mustSucceed && run.result.code !== 0) failures.push(`${ended(run)}: ${lastWords(run.result)}`);
    if (run.result.timedOut) failures.push('took too long');
    const got = upstream.requests.slice(before).map(({ body }) => body.toString());
    for (const body of got)
      if (body.includes(ASKED) || body.includes(TOLD)) failures.push('the provider saw an address');
    const seen: SeenRequest[] = [];
    for (const exchange of run.generations) {
      const sent = fillModel(findModelHole(exchange.requestBody.toString('utf8')), PROVIDER_MODEL);
      const found = got.findIndex((body) => this.#isCloakOf(sent, body));
      const body = got[found];
      if (body === undefined) failures.push('the provider got other bytes than the request with addresses replaced');
      else {
        got.splice(found, 1);
        if (offeredTools(exchange).length > 0) seen.push({ exchange, got: body });
      }
    }
    if (session === this.#session) for (const { got: body } of seen) failures.push(...this.#checkPrefix(body));
    return { run, seen, failures };
  }

  /** Whether `got` is `sent` with a placeholder in the place of each address, for each address the same one ever. */
  #isCloakOf(sent: string, got: string): boolean {
    const values = new Map<string, string>();
    let at = 0;
    for (const [index, literal] of got.split(/(TGE\d{12})/).entries()) {
      if (index % 2 === 0) {
        if (!sent.startsWith(literal, at)) return false;
        at += literal.length;
        continue;
      }
      // What is signed has its placeholder on both sides.
      const isSame = sent.startsWith(literal, at);
      ADDRESS.lastIndex = at;
      const value = isSame ? literal : ADDRESS.exec(sent)?.[0];
      if (value === undefined) return false;
      if (!isSame && (values.get(literal) ?? this.#values.get(literal) ?? value) !== value) return false;
      if (!isSame) values.set(literal, value);
      at += value.length;
    }
    if (at !== sent.length) return false;
    for (const [placeholder, value] of values) this.#values.set(placeholder, value);
    return true;
  }

  /** Each request begins with the conversation of the one before, to the byte: a provider's cache finds it again. */
  #checkPrefix(body: string): string[] {
    const earlier = this.#told;
    this.#told = conversationOf(body);
    const differs = earlier.findIndex((item, index) => this.#told[index] !== item);
    return differs === -1
      ? []
      : [`item ${differs} of the conversation was told otherwise: ${this.#told[differs]?.slice(0, 300)}`];
  }

  #checkAnswer({ output }: AgentRun, seen: readonly SeenRequest[]): string[] {
    const failures: string[] = [];
    if (!output.text.includes(ANSWER))
      failures.push(`shows ${JSON.stringify(output.text.slice(0, 200))}, and not ${JSON.stringify(ANSWER)}`);
    const last = seen.at(-1)?.exchange;
    if (last?.responseHeaders.get('x-service-guardrail') !== 'cloaked') failures.push('no header says cloaked');
    return failures;
  }

  /** Thinking that is signed comes back with its placeholder, as it was said. */
  #checkThinking(last: SeenRequest | undefined, failures: string[]): string[] {
    if (last === undefined) return [];
    const mark = last.got.includes(SIGNATURE) ? SIGNATURE : last.got.includes(SEAL) ? SEAL : null;
    if (mark === null) return ['sends no signed thinking back'];
    const sent = last.exchange.requestBody.toString('utf8');
    const said = /They ask about TGE\d{12}\./.exec(sent)?.[0];
    if (said === undefined || !last.got.includes(said))
      failures.push('signed thinking did not come back as it was said');
    return ['signed thinking comes back'];
  }

  #checkShown({ result }: AgentRun, words: string): string[] {
    const shown = `${result.stdout}\n${result.stderr}`;
    const failures = [];
    if (!shown.includes(words)) failures.push(`does not show why: ${lastWords(result)}`);
    if (result.timedOut) failures.push('took too long');
    return failures;
  }
}

function ended({ result }: AgentRun): string {
  return `ended with ${result.code}`;
}

/** The items of a conversation; without the marks of where to cache, which move on with each request. */
function conversationOf(body: string): string[] {
  const { messages, input } = JSON.parse(body, (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  ) as {
    messages?: unknown[];
    input?: unknown[];
  };
  return (messages ?? input ?? []).map((item) => JSON.stringify(item));
}
