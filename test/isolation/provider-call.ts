// A request that arrives at a provider: its exchange, what the plan does with it, and the expected bytes of its body.
// Every byte that arrives is compared with them.

import { cutAtHoles, onwardOf } from './guarded.ts';
import type { Exchange, ProviderStep } from './plan.ts';
import type { Watch } from './watch.ts';
import { MODELS, type ProviderId } from './world.ts';

const ASKED_USAGE = Buffer.from(',"stream_options":{"include_usage":true}');
const EMPTY = Buffer.alloc(0);

export interface ProviderCallParts {
  readonly provider: ProviderId;
  readonly exchange: Exchange;
  readonly step: ProviderStep;
  /** As the head declares it. */
  readonly bodyBytes: number;
  /** The connection has carried a request before. */
  readonly isOnKeptConnection: boolean;
}

interface ExpectedBody {
  readonly parts: readonly Buffer[];
  /** The parts that are placeholders: the arriving bytes are kept there. */
  readonly holes: readonly Buffer[];
  readonly asksForUsage: boolean;
}

export class ProviderCall {
  readonly provider: ProviderId;
  readonly exchange: Exchange;
  readonly step: ProviderStep;
  readonly bodyBytes: number;
  readonly isOnKeptConnection: boolean;
  readonly expected: ExpectedBody;
  isAnswered = false;
  /** The body is not as expected, and this was reported once. */
  isBroken = false;
  private arrivedBytes = 0;

  constructor({ provider, exchange, step, bodyBytes, isOnKeptConnection }: ProviderCallParts) {
    this.provider = provider;
    this.exchange = exchange;
    this.step = step;
    this.bodyBytes = bodyBytes;
    this.isOnKeptConnection = isOnKeptConnection;
    this.expected = expectedBody(provider, exchange, bodyBytes);
  }

  /** How many bytes of the body have yet to arrive. */
  get missingBytes(): number {
    return this.bodyBytes - this.arrivedBytes;
  }

  checkLength(watch: Watch): void {
    const { provider, exchange, bodyBytes } = this;
    const expectedBytes = lengthOf(this.expected.parts);
    if (expectedBytes !== bodyBytes)
      watch.violation(
        'wrong bytes',
        `${provider}: exchange ${exchange.index}: a body of ${bodyBytes} bytes, not ${expectedBytes}`,
      );
  }

  /** Takes the next bytes of the body and compares each with what the client has sent. */
  take(bytes: Buffer, watch: Watch): void {
    if (!this.isBroken) this.compare(bytes, watch);
    this.arrivedBytes += bytes.length;
  }

  private compare(bytes: Buffer, watch: Watch): void {
    const { arrivedBytes, expected } = this;
    watch.checkedBytes += bytes.length;
    let partStart = 0;
    for (const part of expected.parts) {
      const from = Math.max(arrivedBytes, partStart);
      const to = Math.min(arrivedBytes + bytes.length, partStart + part.length);
      if (from < to && expected.holes.includes(part))
        bytes.copy(part, from - partStart, from - arrivedBytes, to - arrivedBytes);
      else if (
        from < to &&
        part.compare(bytes, from - arrivedBytes, to - arrivedBytes, from - partStart, to - partStart) !== 0
      )
        return this.reportBroken(bytes, watch);
      partStart += part.length;
    }
  }

  private reportBroken(bytes: Buffer, watch: Watch): void {
    const { provider, exchange, step, arrivedBytes, bodyBytes } = this;
    this.isBroken = true;
    const where =
      `${provider}: the body of exchange ${exchange.index} of tenant ${exchange.tenant} (${step}) ` +
      `from byte ${arrivedBytes} of ${bodyBytes}`;
    watch.wrongBytes(bytes, exchange, where);
  }
}

/**
 * What the client sent, with the name of a deployment of this provider in place of the model. If several deployments
 * may have been asked, the length tells which was.
 */
function expectedBody(provider: ProviderId, exchange: Exchange, bodyBytes: number): ExpectedBody {
  const { models, isForm, isStream, kind } = exchange;
  const onward = onwardOf(exchange);
  const nothing = { parts: [exchange.body], holes: [], asksForUsage: false };
  if (onward === null) return nothing;
  const { body, modelAt } = onward;
  const candidates = MODELS.filter(({ id }) => models.includes(id)).flatMap(({ deployments, asksForUsage }) =>
    deployments
      .filter((deployment) => deployment.provider === provider)
      .map(({ model }) => {
        const before = cutAtHoles(body.subarray(0, modelAt.start), 0, onward.holes);
        const behind = cutAtHoles(body.subarray(modelAt.end), modelAt.end, onward.holes);
        const last = behind.parts.at(-1) ?? EMPTY;
        const own = Buffer.from(isForm ? model : JSON.stringify(model));
        const asks = asksForUsage && isStream && kind === 'chat';
        return {
          parts: asks
            ? [...before.parts, own, ...behind.parts.slice(0, -1), last.subarray(0, -1), ASKED_USAGE, last.subarray(-1)]
            : [...before.parts, own, ...behind.parts],
          holes: [...before.cut, ...behind.cut],
          asksForUsage: asks,
        };
      }),
  );
  const fits = candidates.find(({ parts }) => lengthOf(parts) === bodyBytes);
  return fits ?? candidates[0] ?? nothing;
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}
