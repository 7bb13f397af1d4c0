// What the agents have in common for the runner: how one is told where the gateway is, asked something, and read.

import type { TappedExchange } from './wire-tap.ts';

export interface Agent {
  readonly name: string;
  readonly packageName: string;
  /** The command in node_modules/.bin. */
  readonly command: string;
  /** Scripts of packages that npm does not run by itself, from node_modules. */
  readonly installScripts: readonly string[];
  /** Where it sends what the model is to answer. */
  readonly path: string;
  /** What the agent asks for; an alias of the model in the catalog. */
  readonly model: string;
  /** Its tools that run a shell command, whichever it offers. */
  readonly shellTools: Readonly<Record<string, (command: string) => unknown>>;
  /** After a stream that failed it asks for the same reply once more, whole. */
  readonly asksAgainUnstreamed?: true;
  /** Answers that are no success and are meant so. */
  isExpectedRefusal(exchange: TappedExchange): boolean;
  /** Writes its settings into the home directory; gives the environment to run it with. */
  configure(place: AgentPlace): Readonly<Record<string, string>>;
  /** Arguments that ask `prompt`, in a session that it began before or in a new one. */
  ask(prompt: string, sessionId: string | null): readonly string[];
  readOutput(stdout: string): AgentOutput;
}

export interface AgentPlace {
  readonly home: string;
  /** The directory it works in. */
  readonly project: string;
  /** Without a path. */
  readonly gatewayUrl: string;
  readonly key: string;
}

export interface AgentOutput {
  /** What the user is shown as the answer. */
  readonly text: string;
  readonly sessionId: string | null;
}

/** Each line that is a JSON object; agents mix them with other words. */
export function readJsonLines(text: string): Record<string, unknown>[] {
  return text.split('\n').flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return typeof value === 'object' && value !== null ? [value as Record<string, unknown>] : [];
    } catch {
      return [];
    }
  });
}
