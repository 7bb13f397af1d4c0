// Load that does not slow down with who serves it: so many requests a second by a schedule that waits for nobody, and
// what each of them was answered.

import { Agent } from 'node:http';
import { seededRandom } from '../support/byte-splits.ts';
import { pause } from '../support/waiting.ts';
import { makeRequest, type SeenResponse, send } from './kill-load.ts';
import type { KillOrganization } from './kill-world.ts';

export interface SteadyAsker extends KillOrganization {
  /** Its part of the requests, beside the parts of the others. */
  readonly share: number;
}

export interface Sent<Phase extends string> {
  readonly phase: Phase;
  readonly response: SeenResponse;
  readonly endedAtMs: number;
  readonly tookMs: number;
}

/** How an organization's requests of one phase were answered. */
export interface Answers {
  readonly answers: Record<string, number>;
  readonly servedMs: Durations | null;
  readonly refusalMs: Durations | null;
}

type Durations = Readonly<Record<'p50' | 'p99' | 'longest', number>>;

/** Below the server's own limit, so that no request meets a connection that is being closed for want of work. */
const IDLE_CONNECTION_MS = 5_000;
const SPREAD_REQUESTS = 32;

export class SteadyLoad<Phase extends string> {
  readonly sent: Sent<Phase>[] = [];
  /**
   * How far it was behind its schedule at the most. Where that is seconds, this machine had no processor to spare, and
   * what was slow or given up then says little.
   */
  behindMs = 0;
  private readonly createdMs = performance.now();
  /** Takes turns among its connections, so that every process that has some is asked. */
  private readonly agent = new Agent({
    keepAlive: true,
    maxSockets: 512,
    scheduling: 'fifo',
    timeout: IDLE_CONNECTION_MS,
  });
  private readonly open = new Set<Promise<void>>();
  private url: string;
  private readonly rate: number;
  private readonly seed: number;
  private readonly random: () => number;
  private count = 0;
  private ended = false;

  constructor(url: string, { rate, seed }: { rate: number; seed: number }) {
    this.url = url;
    this.rate = rate;
    this.seed = seed;
    this.random = seededRandom(seed);
  }

  /** The installation was started anew, elsewhere. */
  goTo(url: string): void {
    this.url = url;
  }

  /** For so many seconds, or until something is over. */
  async run(phase: Phase, askers: readonly SteadyAsker[], until: number | Promise<unknown>): Promise<void> {
    const startedMs = performance.now();
    const count = typeof until === 'number' ? until * this.rate : Number.POSITIVE_INFINITY;
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    if (typeof until !== 'number') until.then(end, end);
    for (let index = 0; index < count && !isOver && !this.ended; index += 1) {
      const waitMs = startedMs + (index * 1_000) / this.rate - performance.now();
      this.behindMs = Math.max(this.behindMs, Math.round(-waitMs));
      if (waitMs > 1) await pause(waitMs);
      void this.start(phase, this.choose(askers));
    }
  }

  start(phase: Phase, asker: KillOrganization, { ownConnection = false } = {}): Promise<void> {
    this.count += 1;
    const request = makeRequest(`${this.seed}-${this.count}`, asker, this.random);
    const startedMs = performance.now();
    const ended = send(this.url, asker, request, ownConnection ? new Agent() : this.agent).then((response) => {
      const endedAtMs = performance.now();
      this.sent.push({ phase, response, endedAtMs, tookMs: endedAtMs - startedMs });
      this.open.delete(ended);
    });
    this.open.add(ended);
    return ended;
  }

  /** So many at once that there are connections to every process. */
  spread(phase: Phase, askers: readonly SteadyAsker[]): void {
    for (let index = 0; index < SPREAD_REQUESTS; index += 1) void this.start(phase, this.choose(askers));
  }

  private choose(askers: readonly SteadyAsker[]): SteadyAsker {
    let rest = this.random() * askers.reduce((sum, { share }) => sum + share, 0);
    const chosen = askers.find(({ share }) => {
      rest -= share;
      return rest < 0;
    });
    return chosen ?? (askers[0] as SteadyAsker);
  }

  /** Answers that should not have been, how often, and in which minutes; null of what is as it should be. */
  countProblems(problemOf: (sent: Sent<Phase>) => string | null): string[] {
    const found = new Map<string, Sent<Phase>[]>();
    for (const sent of this.sent) {
      const problem = problemOf(sent);
      if (problem !== null) found.set(problem, [...(found.get(problem) ?? []), sent]);
    }
    return [...found].map(([problem, all]) => {
      const minutes = new Set(all.map(({ endedAtMs }) => Math.floor((endedAtMs - this.createdMs) / 60_000)));
      return `${all.length} × ${problem}, in minute ${[...minutes].join(', ')}`;
    });
  }

  /** Sends no more, and waits for what is under way. */
  async end(): Promise<void> {
    this.ended = true;
    await Promise.all(this.open);
    this.agent.destroy();
  }
}

/** Of one phase, by organization. */
export function summarizeAnswers<Phase extends string>(
  sent: readonly Sent<Phase>[],
  wanted: Phase,
  askers: readonly SteadyAsker[],
): Record<string, Answers> {
  const found: Record<string, Answers> = {};
  for (const { slug } of askers) {
    const own = sent.filter(({ phase, response }) => phase === wanted && response.organization === slug);
    const answers: Record<string, number> = {};
    for (const { response } of own) {
      const name = nameOf(response);
      answers[name] = (answers[name] ?? 0) + 1;
    }
    const durations = (isServed: boolean) =>
      summarizeMs(own.filter(({ response }) => (response.status === 200) === isServed).map(({ tookMs }) => tookMs));
    found[slug] = { answers, servedMs: durations(true), refusalMs: durations(false) };
  }
  return found;
}

function nameOf({ status, refusal, complete }: SeenResponse): string {
  if (status === null) return 'no answer';
  if (refusal !== null) return `${status} ${refusal}`;
  return status === 200 && !complete ? '200, cut' : String(status);
}

function summarizeMs(durationsMs: readonly number[]): Durations | null {
  const sorted = durationsMs.toSorted((one, other) => one - other);
  const at = (part: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) * 10) / 10;
  return sorted.length === 0 ? null : { p50: at(0.5), p99: at(0.99), longest: at(1) };
}
