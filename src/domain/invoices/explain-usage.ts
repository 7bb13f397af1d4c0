// Explains why a provider's counts differ from ours. Each cause subtracts what it explains from the difference; causes
// that can be shown (the same tokens elsewhere) come before causes that are only possible.

import type { CauseKind } from './causes.ts';
import { addMeters, describeMeters, grouped, isNothing, METERS, type Meter, type Meters, mapMeters } from './meters.ts';
import type { RecordedUsage } from './recorded-usage.ts';

export interface UsageDifference {
  /** Theirs less ours. */
  readonly delta: Meters;
  readonly ours: readonly RecordedUsage[];
  /** null: the export does not say. */
  readonly theirRequests: number | null;
  /** Our usage close to midnight, on this day and on the days beside it. */
  readonly edge: Meters;
  readonly edgeBeside: Meters;
  /** Theirs less ours on the days beside, for the same model and key. */
  readonly deltaBeside: Meters;
  /** False: a day beside is not compared, so its difference is not known. */
  readonly isBesideCompared: boolean;
}

export interface ExplainedUsage {
  readonly kind: CauseKind;
  readonly evidence: string;
  /** The part of the difference that the cause explains. */
  readonly part: Meters;
}

const INPUTS: readonly Meter[] = ['input', 'cached_input', 'cache_write', 'cache_write_1h'];

export function explainUsage(difference: UsageDifference): readonly ExplainedUsage[] {
  const causes: ExplainedUsage[] = [];
  let left = difference.delta;
  for (const explain of [dividedInput, dayEdge, unseen, counted, open, suspected, rest]) {
    if (isNothing(left)) break;
    const cause = explain({ ...difference, delta: left });
    if (cause === null || isNothing(cause.part)) continue;
    causes.push(cause);
    left = addMeters(left, cause.part, -1);
  }
  return causes;
}

type Explain = (difference: UsageDifference) => ExplainedUsage | null;

/** The total input is equal, but it is divided differently between its meters. */
const dividedInput: Explain = ({ delta }) => {
  const sum = INPUTS.reduce((total, meter) => total + delta[meter], 0);
  const part = mapMeters((meter) => (INPUTS.includes(meter) ? delta[meter] : 0));
  if (sum !== 0 || isNothing(part)) return null;
  const isHour = delta.cache_write_1h !== 0 && delta.cache_write === -delta.cache_write_1h && delta.input === 0;
  return {
    kind: isHour ? 'cache_write_1h' : 'cache',
    evidence: `the same input in all, divided otherwise: ${describeMeters(part, true)}`,
    part,
  };
};

/** The surplus of one day is the deficit of a day beside it, and requests at midnight are enough to account for it. */
const dayEdge: Explain = ({ delta, deltaBeside, isBesideCompared, edge, edgeBeside }) => {
  const isMoved = METERS.every((meter) => {
    const moved = delta[meter];
    const most = moved < 0 ? edge : edgeBeside;
    const isOpposite = moved < 0 ? deltaBeside[meter] >= -moved : -deltaBeside[meter] >= moved;
    return moved === 0 || ((isOpposite || !isBesideCompared) && Math.abs(moved) <= most[meter]);
  });
  if (!isMoved) return null;
  const beside = isBesideCompared ? ', the opposite on a day beside' : '';
  const evidence = `${describeMeters(delta, true)} here${beside}, and as much was open at midnight`;
  return { kind: 'day_edge', evidence, part: delta };
};

const counted: Explain = ({ delta, ours }) => {
  const guesses = ours.filter(({ usageSource }) => usageSource === 'counted');
  const requests = sumRequests(guesses);
  if (requests === 0) return null;
  // Our count covers what was relayed, not what the provider still produced after the client had left.
  const part = mapMeters((meter) => (hasMeter(guesses, meter) ? delta[meter] : 0));
  const evidence = `${times(requests)} of ours reported no usage, and what was relayed was counted instead`;
  return { kind: 'counted', evidence, part };
};

const unseen: Explain = ({ delta, ours, theirRequests }) => {
  const lost = ours.filter(({ usageSource }) => usageSource === 'unseen');
  const requests = sumRequests(lost);
  if (requests === 0) return null;
  const more = theirRequests === null ? null : theirRequests - sumRequests(ours.filter(isMeasured));
  if (more !== null && more <= 0) return null;
  const told = more === null ? '' : `; they count ${grouped(more)} requests more than we have usage of`;
  const guessed = sumRequests(ours.filter(({ usageSource }) => usageSource === 'counted'));
  const also = guessed === 0 ? '' : `; of ${times(guessed)} more the usage is our own count`;
  const evidence = `${times(requests)} of ours ended without a usage (${outcomesOf(lost)})${told}${also}`;
  return { kind: 'cancelled', evidence, part: onlyMore(delta) };
};

const open: Explain = ({ delta, ours }) => {
  const requests = sumRequests(ours.filter(({ usageSource }) => usageSource === 'open'));
  if (requests === 0) return null;
  return {
    kind: 'open',
    evidence: `${times(requests)} of ours are not over, or not posted yet`,
    part: onlyMore(delta),
  };
};

const suspected: Explain = ({ delta, ours }) => {
  const requests = ours.reduce((sum, usage) => sum + usage.suspected, 0);
  if (requests === 0) return null;
  const evidence = `of ${times(requests)} of ours the reported usage was not believed, and is in suspense`;
  return { kind: 'suspense', evidence, part: delta };
};

const rest: Explain = ({ delta, ours, theirRequests }) => {
  const isMore = METERS.some((meter) => delta[meter] > 0);
  const own = sumRequests(ours.filter(isMeasured));
  const told = theirRequests === null ? '' : `; they count ${grouped(theirRequests)} requests, and we ${grouped(own)}`;
  if (isMore && METERS.some((meter) => delta[meter] < 0))
    return { kind: 'unexplained', evidence: `${describeMeters(delta, true)}${told}`, part: delta };
  return isMore
    ? {
        kind: 'outside',
        evidence: `${describeMeters(delta, true)}, and no request of ours is without usage${told}`,
        part: delta,
      }
    : { kind: 'not_billed', evidence: `${describeMeters(delta, true)}${told}`, part: delta };
};

export function isMeasured({ usageSource }: RecordedUsage): boolean {
  return usageSource === 'reported' || usageSource === 'counted';
}

export function sumRequests(usages: readonly RecordedUsage[]): number {
  return usages.reduce((sum, { requests }) => sum + requests, 0);
}

export function times(requests: number): string {
  return requests === 1 ? '1 request' : `${grouped(requests)} requests`;
}

export function outcomesOf(usages: readonly RecordedUsage[]): string {
  const counts = new Map<string, number>();
  for (const { outcome, requests } of usages) {
    const name = outcome ?? 'not known';
    counts.set(name, (counts.get(name) ?? 0) + requests);
  }
  return [...counts].map(([outcome, requests]) => `${outcome} ${grouped(requests)}`).join(', ');
}

function hasMeter(usages: readonly RecordedUsage[], meter: Meter): boolean {
  // Our own count has input and output, but cannot tell which part of the input the provider had cached.
  return INPUTS.includes(meter) || meter === 'output' || usages.some(({ meters }) => meters[meter] > 0);
}

function onlyMore(delta: Meters): Meters {
  return mapMeters((meter) => Math.max(0, delta[meter]));
}
