// One agent with a home and a project of its own, asked in one session, and what it sent meanwhile.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent, AgentOutput } from './agent.ts';
import { type RunResult, runBounded } from './bounded-process.ts';
import type { ClosedNetwork } from './closed-network.ts';
import { commandPath } from './install-agents.ts';
import type { TappedExchange, WireTap } from './wire-tap.ts';

const RUN_TIMEOUT_MS = 120_000;

export interface AgentRun {
  readonly result: RunResult;
  readonly output: AgentOutput;
  /** All that it sent. */
  readonly exchanges: readonly TappedExchange[];
  /** Those of them that ask a model. */
  readonly generations: readonly TappedExchange[];
}

export interface AgentSessionPlace {
  readonly agent: Agent;
  /** Its own. */
  readonly directory: string;
  readonly tap: WireTap;
  readonly network: ClosedNetwork;
  readonly key: string;
}

export class AgentSession {
  readonly env: NodeJS.ProcessEnv;
  /** The directory it works in. */
  readonly project: string;
  readonly #agent: Agent;
  readonly #tap: WireTap;
  #sessionId: string | null = null;

  constructor({ agent, directory, tap, network, key }: AgentSessionPlace) {
    const [home, temporary] = [join(directory, 'home'), join(directory, 'tmp')];
    this.project = join(directory, 'project');
    for (const path of [home, this.project, temporary]) mkdirSync(path, { recursive: true });
    this.#agent = agent;
    this.#tap = tap;
    const own = agent.configure({ home, project: this.project, gatewayUrl: tap.url, key });
    const machine = {
      PATH: process.env.PATH,
      TOLLGATE_TEST_RUN: process.env.TOLLGATE_TEST_RUN,
      LANG: 'C.UTF-8',
      TERM: 'dumb',
    };
    this.env = { ...machine, ...network.env, HOME: home, TMPDIR: temporary, ...own };
  }

  /** Runs the agent once, in the session that it began before or in a new one. */
  async ask(prompt: string): Promise<AgentRun> {
    const before = this.#tap.exchanges().length;
    const result = await runBounded({
      command: commandPath(this.#agent),
      args: this.#agent.ask(prompt, this.#sessionId),
      cwd: this.project,
      env: this.env,
      timeoutMs: RUN_TIMEOUT_MS,
    });
    const exchanges = this.#tap.exchanges().slice(before);
    const generations = exchanges.filter(
      ({ method, path }) => method === 'POST' && path.split('?')[0] === this.#agent.path,
    );
    const output = this.#agent.readOutput(result.stdout);
    this.#sessionId ??= output.sessionId;
    return { result, output, exchanges, generations };
  }
}
