// What a run has seen: how much was checked, which faults occurred, and every violation.

import { foreignBytes } from './marks.ts';

export type ViolationKind =
  /** Bytes of another tenant, or of another exchange of the same tenant. */
  | 'foreign mark'
  /** A provider was called for a request whose client had left, for a refused request, or once too often. */
  | 'stray call'
  /** Bytes that differ from those that were sent, without being another tenant's. */
  | 'wrong bytes'
  /** Another provider's credential, another organization's, or a client's. */
  | 'wrong credential'
  /** One connection to a provider carried credentials of two owners. */
  | 'shared connection'
  /** One placeholder stands for values of two organizations. */
  | 'shared placeholder'
  /** An organization was refused because of what happened to the key of another organization, or of the service. */
  | 'foreign pause'
  /** An uploaded file, or its existence, shows to another organization, or the file differs from what was uploaded. */
  | 'foreign file'
  /** A reply that was cut looks whole. */
  | 'false end'
  /** Something that should have ended has not. */
  | 'left over';

const DETAILS_MAX = 12;

export class Watch {
  exchanges = 0;
  /** The number of bytes that were compared with the expected ones. */
  checkedBytes = 0;
  calls = 0;
  readonly violations = new Map<ViolationKind, number>();
  readonly details: string[] = [];
  /** Bytes of foreign marks; in each call or reply only the first piece with any is counted. */
  foreignBytes = 0;
  readonly faults = new Map<string, number>();
  readonly answers = new Map<string, number>();
  /** The outcomes of clients whose look-ups waited. */
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

  /** Reports bytes that are not as expected, in data of the tenant and exchange `own`. */
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

  /** The summary: one line for each kind of figure. */
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
