// The streams of a run of many: what each is asked for and how its client reads it, drawn from a seed, and the exact
// bytes of every event, so that provider and client know them without telling each other.

import { createHash } from 'node:crypto';
import { generateTokens } from '../../src/simulator/generated-text.ts';

const STREAM_FAULTS = ['cut', 'reset', 'mid-event', 'stall', 'no-end', 'refuse'] as const;
type StreamFault = (typeof STREAM_FAULTS)[number];

/** What the provider is asked for, in the request's text. */
export interface StreamOrder {
  readonly id: string;
  readonly tokens: number;
  /** Between two events; 0: as fast as they are taken. */
  readonly gapMs: number;
  readonly fault: StreamFault | null;
  /** Events before it. */
  readonly faultAfter: number;
}

export type StreamReading = 'all' | 'leaves' | 'slowly' | 'stops';

export interface StreamPlan {
  readonly order: StreamOrder;
  readonly reading: StreamReading;
  /** Events after which its client leaves, or stops reading. */
  readonly until: number;
  readonly withUsage: boolean;
}

/** Shares of all streams; the rest is read as it comes, from a provider that is well. */
const SHARES = { leaves: 0.06, slowly: 0.04, stops: 0.01, fails: 0.06, flooded: 0.0005, floodedAndStops: 0.0005 };
const WITHOUT_USAGE_SHARE = 0.1;
const GAP_MS = { least: 400, most: 600 };
/** Some 33 MB: more than the buffers of sockets on the way take. */
const FLOOD_TOKENS = 150_000;
export const PROMPT_TOKENS = 10;

/** `msLeft`: for how long the run goes on, beyond which no stream is to last. */
export function drawPlan(id: string, random: () => number, msLeft: number): StreamPlan {
  const gapMs = GAP_MS.least + Math.floor(random() * (GAP_MS.most - GAP_MS.least));
  const tokensMax = Math.max(2, Math.floor(msLeft / gapMs));
  const tokens = Math.min(60 + Math.floor(random() * 240), tokensMax);
  const kind = random();
  const at = Math.floor(random() * tokens);
  const withUsage = random() >= WITHOUT_USAGE_SHARE;
  const order: StreamOrder = { id, tokens, gapMs, fault: null, faultAfter: 0 };
  const plan: StreamPlan = { order, reading: 'all', until: at, withUsage };
  let rest = kind;
  const within = (share: number): boolean => {
    const isIt = rest >= 0 && rest < share;
    rest -= share;
    return isIt;
  };
  if (within(SHARES.leaves)) return { ...plan, reading: 'leaves' };
  if (within(SHARES.slowly)) return { ...plan, reading: 'slowly' };
  if (within(SHARES.stops)) return { ...plan, reading: 'stops' };
  if (within(SHARES.fails)) {
    const fault = STREAM_FAULTS[Math.floor(random() * STREAM_FAULTS.length)] as StreamFault;
    // Before its first event a stream says nothing yet that tokens could be counted of.
    return { ...plan, order: { ...order, fault, faultAfter: Math.max(1, at) } };
  }
  if (within(SHARES.flooded)) return { ...flood(id), reading: 'slowly' };
  if (within(SHARES.floodedAndStops)) return flood(id);
  return plan;
}

/** Comes as fast as it is taken; its client stops after the first event. */
export function flood(id: string): StreamPlan {
  const order: StreamOrder = { id, tokens: FLOOD_TOKENS, gapMs: 0, fault: null, faultAfter: 0 };
  return { order, reading: 'stops', until: 1, withUsage: true };
}

const ORDER = /Stream (\{[^}]*\})/;

/** `model`: as the client or as the provider names it; nothing else in the body differs. */
export function requestBody({ order, withUsage }: StreamPlan, model: string): string {
  return JSON.stringify({
    model,
    messages: [{ role: 'user', content: `Stream ${JSON.stringify(order)}` }],
    max_tokens: order.tokens,
    stream: true,
    ...(withUsage ? { stream_options: { include_usage: true } } : {}),
  });
}

export function bodyHash(body: string): string {
  return createHash('sha256').update(body).digest('hex');
}

export function readOrder(body: string): { readonly order: StreamOrder; readonly withUsage: boolean } {
  const { messages, stream_options } = JSON.parse(body) as {
    messages: { content: string }[];
    stream_options?: object;
  };
  const order = JSON.parse(ORDER.exec(messages[0]?.content ?? '')?.[1] ?? '') as StreamOrder;
  return { order, withUsage: stream_options !== undefined };
}

/** Digits of the time at which an event was sent. */
export const STAMP_DIGITS = 16;
/** Stands before the stamp in every event of text. */
const STAMP = '"stamp":"';

/**
 * The events of one stream, in the order in which they are sent. All text is latin1, one character for each byte of
 * UTF-8, since it is compared with bytes as they came.
 */
export class StreamEvents {
  private readonly before: string;
  private readonly tokens: Generator<string, never>;
  private readonly order: StreamOrder;
  private readonly withUsage: boolean;
  readonly providerId: string;
  /** Of its text; also when its first event is due. */
  readonly seed: number;
  private sequence = 0;

  constructor(order: StreamOrder, withUsage: boolean) {
    this.order = order;
    this.withUsage = withUsage;
    this.providerId = `chatcmpl-sim-${order.id}`;
    this.before = `data: {"id":"${this.providerId}","object":"chat.completion.chunk","created":1700000000,"model":"m",`;
    this.seed = Number.parseInt(bodyHash(order.id).slice(0, 8), 16);
    this.tokens = generateTokens(this.seed);
  }

  /** The next event of text up to its stamp, and what follows the stamp. */
  next(): { readonly head: string; readonly tail: string } {
    const head =
      `${this.before}"choices":[{"index":0,"delta":{"content":"${latin1(this.tokens.next().value)}"},` +
      `"finish_reason":null}],"sequence":${this.sequence},${STAMP}`;
    this.sequence += 1;
    return { head, tail: '"}\n\n' };
  }

  /** All that follows the text. */
  closing(): string {
    const { tokens } = this.order;
    const usage = `{"prompt_tokens":${PROMPT_TOKENS},"completion_tokens":${tokens},"total_tokens":${PROMPT_TOKENS + tokens}}`;
    return (
      `${this.before}"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n` +
      `${this.withUsage ? `${this.before}"choices":[],"usage":${usage}}\n\n` : ''}data: [DONE]\n\n`
    );
  }
}

const known = new Map<string, string>();

function latin1(token: string): string {
  let found = known.get(token);
  if (found === undefined) {
    found = Buffer.from(token, 'utf8').toString('latin1');
    known.set(token, found);
  }
  return found;
}
