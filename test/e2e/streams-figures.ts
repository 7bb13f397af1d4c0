// What a run of many streams tells: how long events took, how streams came out, what each process took of the machine;
// and what of it is not as it should be.

import type { ProcessSample } from './process-growth.ts';
import type { SeenStream } from './streams-client.ts';

export interface ProcessUse {
  readonly megabytes: number;
  readonly descriptors: number;
  readonly cores: number;
  readonly loopDelayMaxMs: number | null;
}

/** How long events took, in quarters of a millisecond. */
export class EventTimes {
  private static readonly PER_MS = 4;
  private readonly counts = new Uint32Array(40_000);
  isMeasuring = false;
  count = 0;

  add(tookMs: number): void {
    if (!this.isMeasuring) return;
    this.count += 1;
    const at = Math.min(Math.max(0, Math.floor(tookMs * EventTimes.PER_MS)), this.counts.length - 1);
    this.counts[at] = (this.counts[at] as number) + 1;
  }

  quantile(part: number): number {
    let rest = part * this.count;
    const at = this.counts.findIndex((count) => {
      rest -= count;
      return count > 0 && rest <= 0;
    });
    return (at + 1) / EventTimes.PER_MS;
  }
}

function nameOf({ plan: { order, reading } }: SeenStream): string {
  if (order.fault !== null) return `provider: ${order.fault}`;
  return `${order.gapMs === 0 ? 'flooded, ' : ''}client: ${reading}`;
}

function answerOf({ status, isWhole }: SeenStream): string {
  if (status === null) return 'no answer';
  return status === 200 ? (isWhole ? 'whole' : 'not whole') : String(status);
}

export function countSeen(seen: readonly SeenStream[]): Record<string, Record<string, number>> {
  const found: Record<string, Record<string, number>> = {};
  for (const one of seen) {
    const own = (found[nameOf(one)] ??= {});
    own[answerOf(one)] = (own[answerOf(one)] ?? 0) + 1;
  }
  return found;
}

/** Every byte is the right one, and everything is whole that nobody cut. */
export function checkStreams(seen: readonly SeenStream[]): string[] {
  const problems: string[] = [];
  for (const one of seen) {
    const { order, reading } = one.plan;
    if (one.problem !== null) problems.push(one.problem);
    const isFlooded = order.gapMs === 0;
    const mustBeWhole = order.fault === null && reading !== 'leaves' && !(isFlooded && reading === 'stops');
    if (mustBeWhole && !one.isWhole)
      problems.push(`stream ${order.id}, ${nameOf(one)}: ${answerOf(one)}, ${one.deltas} events`);
    if (order.fault !== null && one.isEnded && one.status === 200)
      problems.push(`stream ${order.id} failed and its framing ended`);
    if (order.fault !== null && one.isWhole) problems.push(`stream ${order.id} failed and looks whole`);
    if (isFlooded && reading === 'stops' && one.isWhole) problems.push(`stream ${order.id} was not read and is whole`);
    if (order.fault === 'refuse' && one.status === 200) problems.push(`stream ${order.id} was refused and served`);
  }
  return problems;
}

/** While streams were open: the most memory and descriptors, and the share of a core. */
export function usesOf(samples: readonly ProcessSample[]): Record<string, ProcessUse> {
  const found: Record<string, ProcessUse> = {};
  for (const name of new Set(samples.map((sample) => sample.name))) {
    const own = samples.filter((sample) => sample.name === name);
    const [first, last] = [own[0] as ProcessSample, own.at(-1) as ProcessSample];
    const delays = own.flatMap(({ memory }) => (memory === null ? [] : [memory.loopDelayMaxMs]));
    const seconds = Math.max(1, last.atMs - first.atMs) / 1_000;
    found[name] = {
      megabytes: Math.round(Math.max(...own.map(({ residentBytes }) => residentBytes)) / 1e5) / 10,
      descriptors: Math.max(...own.map(({ descriptors }) => descriptors)),
      cores: Math.round(((last.cpuSeconds - first.cpuSeconds) / seconds) * 100) / 100,
      loopDelayMaxMs: delays.length === 0 ? null : Math.round(Math.max(...delays) * 10) / 10,
    };
  }
  return found;
}
