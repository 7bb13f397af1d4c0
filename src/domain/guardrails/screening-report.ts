// What screening did at one stage of a request, in names and counts: for headers, records, metrics and reports. It
// never contains a value or its position.

import { type Finding, strengthOf } from './finding.ts';
import type { Action, Rule } from './policy.ts';

/** What could not be screened, and why. */
export const NOT_SCANNED = [
  'policy',
  'attachment',
  'too_large',
  'timeout',
  'malformed',
  'tokens',
  'external',
  'reply_encoding',
  'image_reply',
] as const;
export type NotScanned = (typeof NOT_SCANNED)[number];

export const DONE = { block: 'blocked', mask: 'masked', cloak: 'cloaked', flag: 'flagged' } as const satisfies Record<
  Action,
  string
>;
export type Done = 'none' | (typeof DONE)[Action];

export interface FindingCount {
  readonly policy: string;
  readonly version: number;
  readonly rule: string;
  readonly entity: string;
  readonly action: Action;
  readonly count: number;
}

/**
 * This many counts are listed by name and the rest is summed, since external detectors invent names. With names of the
 * greatest length, both stages take at most 40,000 bytes of a record.
 */
export const FINDINGS_LISTED_MAX = 64;

/** Names the sum of the counts that are not listed, one for each action. No policy and no rule has an empty name. */
const OTHERS = { policy: '', version: 0, rule: '', entity: 'others' } as const;

export function isOthers({ rule }: FindingCount): boolean {
  return rule === OTHERS.rule;
}

/** Plain data: it comes from workers, and is recorded as it is. Members that say nothing are absent. */
export interface StageReport {
  readonly action: Done;
  /** At most `FINDINGS_LISTED_MAX`, and the sums of the others. */
  readonly findings?: readonly FindingCount[];
  /** Findings where nothing may be rewritten. */
  readonly unrewritten?: number;
  /** Shapes of placeholders in a reply that its request has not made. */
  readonly unrestored?: number;
  readonly not_scanned?: readonly NotScanned[];
}

/** Of both stages; a stage that had no rule, or was not reached, is absent. */
export interface ScreeningReport {
  readonly input?: StageReport;
  readonly output?: StageReport;
}

export interface BlockedBy {
  readonly policy: string;
  readonly rule: string;
  readonly entity: string;
}

/** Counts the findings of one stage. */
export class StageTally {
  blocked: BlockedBy | null = null;
  strongest: Action | null = null;
  unrewritten = 0;
  unrestored = 0;
  private readonly counts = new Map<string, FindingCount & { count: number }>();
  private readonly notScanned = new Set<NotScanned>();

  /** `action`: what is done about the finding, which is not always its rule's action. */
  add(finding: Finding, action: Action): void {
    const { rule, entity } = finding;
    this.count({ policy: rule.policy, version: rule.version, rule: rule.id, entity, action, count: 1 });
    if (action === 'block') this.blocked ??= blockedBy(rule, entity);
  }

  /** Adds what another tally has counted for the same stage. */
  addReport(
    { findings = [], unrewritten = 0, unrestored = 0, not_scanned = [] }: StageReport,
    blocked: BlockedBy | null,
  ): void {
    for (const found of findings) this.count(found);
    this.unrewritten += unrewritten;
    this.unrestored += unrestored;
    for (const reason of not_scanned) this.miss(reason);
    this.blocked ??= blocked;
  }

  private count(found: FindingCount): void {
    const { policy, version, rule, entity, action, count } = found;
    const name = `${policy}\n${version}\n${rule}\n${entity}\n${action}`;
    const known = this.counts.get(name);
    if (known === undefined) this.counts.set(name, { ...found });
    else known.count += count;
    if (this.strongest === null || strengthOf(action) > strengthOf(this.strongest)) this.strongest = action;
  }

  miss(reason: NotScanned): void {
    this.notScanned.add(reason);
  }

  report(): StageReport {
    const findings = listed([...this.counts.values()]);
    return {
      action: this.strongest === null ? 'none' : DONE[this.strongest],
      ...(findings.length === 0 ? {} : { findings }),
      ...(this.unrewritten === 0 ? {} : { unrewritten: this.unrewritten }),
      ...(this.unrestored === 0 ? {} : { unrestored: this.unrestored }),
      ...(this.notScanned.size === 0 ? {} : { not_scanned: [...this.notScanned] }),
    };
  }
}

/** If there are too many counts, the strongest are listed, and of equally strong ones the first. */
function listed(counts: readonly FindingCount[]): FindingCount[] {
  const named = counts.filter((found) => !isOthers(found));
  if (named.length <= FINDINGS_LISTED_MAX) return counts.map((found) => ({ ...found }));
  named.sort((one, other) => strengthOf(other.action) - strengthOf(one.action));
  const kept = new Set(named.slice(0, FINDINGS_LISTED_MAX));
  const others = new Map<Action, number>();
  for (const found of counts)
    if (!kept.has(found)) others.set(found.action, (others.get(found.action) ?? 0) + found.count);
  return [
    ...[...kept].map((found) => ({ ...found })),
    ...[...others].map(([action, count]) => ({ ...OTHERS, action, count })),
  ];
}

function blockedBy(rule: Rule, entity: string): BlockedBy {
  return { policy: rule.policy, rule: rule.id, entity };
}

export function findingsIn({ findings = [] }: StageReport): number {
  return findings.reduce((sum, { count }) => sum + count, 0);
}
