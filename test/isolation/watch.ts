// What a run has seen: how much of it was checked, which faults there were, and everything that must not be.

import { foreignBytes } from './marks.ts';

export type ViolationKind =
  /** Bytes of another tenant, or of another exchange of the same. */
  | 'foreign mark'
  /** A provider was called for a request that nobody waits for, that was refused, or once too often. */
  | 'stray call'
  /** Bytes that are not those that were sent, and no other tenant's either. */
  | 'wrong bytes'
  /** Another provider's credential, another organization's, or a client's. */
  | 'wrong credential'
  /** One connection to a provider carried credentials of two owners. */
  | 'shared connection'
  /** One placeholder stands for values of two organizations. */
  | 'shared placeholder'
  /** An organization is refused for what happened to the key of another, or of the service. */
  | 'foreign pause'
  /** An uploaded file, or that there is one, shows to another organization, or is not what was uploaded. */
  | 'foreign file'
  /** A reply that was cut looks whole. */
  | 'false end'
  /** Something that should have ended has not. */
  | 'left over';

const DETAILS_MAX = 12;

export class Watch {
  exchanges = 0;
  /** Bytes compared, one by one, with what they must be. */
  checkedBytes = 0;
  calls = 0;
  readonly violations = new Map<ViolationKind, number>();
  readonly details: string[] = [];
  /** Bytes of foreign marks; of each call or reply the first piece that has any is counted. */
  foreignBytes = 0;
  readonly faults = new Map<string, number>();
  readonly answers = new Map<string, number>();
  /** What became of those whose look-ups waited. */
  readonly lookUps = new Map<string, number>();

  /** Requests about uploaded files, by method and status. */
  readonly media = new Map<string, number>();

  count(counts: Map<string, number>, name: string): void {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  violation(kind: ViolationKind, detail: string): void {
    this.violations.set(kind, (this.violations.get(kind) ?? 0) + 1);
    if (this.details.length < DETAILS_MAX) this.details.push(`${kind}: ${detail}`);
  }

  /** `bytes` are not what they must be, which is something of `own`'s. */
  wrongBytes(bytes: Buffer, own: { readonly tenant: number; readonly index: number }, where: string): void {
    const foreign = foreignBytes(bytes, own);
    this.foreignBytes += foreign.bytes;
    if (foreign.first === null)
      this.violation('wrong bytes', `${where}: ${JSON.stringify(bytes.subarray(0, 80).toString('latin1'))}`);
    else
      this.violation(
        'foreign mark',
        `${where}: of tenant ${foreign.first.tenant}, ` +
          `exchange ${foreign.first.exchange}, ${foreign.bytes} bytes and more`,
      );
  }

  get violationCount(): number {
    return [...this.violations.values()].reduce((sum, count) => sum + count, 0);
  }

  countOf(kind: ViolationKind): number {
    return this.violations.get(kind) ?? 0;
  }

  /** One line for each kind of figure. */
  report(): string {
    const list = (counts: Map<string, number>): string =>
      [...counts]
        .sort(([, one], [, other]) => other - one)
        .map(([name, count]) => `${name} ${count}`)
        .join(', ');
    return [
      `exchanges: ${this.exchanges}; calls of providers: ${this.calls}; bytes checked: ${this.checkedBytes}`,
      `faults: ${list(this.faults)}`,
      `answers: ${list(this.answers)}`,
      `look-ups: ${list(this.lookUps)}`,
      ...(this.media.size === 0 ? [] : [`files: ${list(this.media)}`]),
      `violations: ${this.violationCount === 0 ? 'none' : list(this.violations)}; foreign ` +
        `marks: ${this.countOf('foreign mark')} (${this.foreignBytes} bytes)`,
      ...this.details.map((detail) => `  ${detail}`),
    ].join('\n');
  }
}
