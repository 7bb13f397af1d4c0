// Keeps what screening knows of one request: its rules, the values behind its placeholders, and the findings of each
// stage.

import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import { RestorableValues } from '../../domain/guardrails/placeholders.ts';
import type { Stage } from '../../domain/guardrails/policy.ts';
import { isUnscreened, type ScreenedWhole } from '../../domain/guardrails/screen-whole.ts';
import {
  type BlockedBy,
  type Done,
  findingsIn,
  type ScreeningReport,
  type StageReport,
} from '../../domain/guardrails/screening-report.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { HeaderList } from '../../http/response-headers.ts';
import type { ExternalAnswer, ExternalDetectors } from './external-detectors.ts';

/** Names of the headers that every screened response carries (spec 7.7). */
export interface GuardrailHeaders {
  readonly action: string;
  readonly count: string;
}

/** The external detectors, and the organization for which they are asked about replies. */
export interface ScreeningExternal {
  readonly detectors: ExternalDetectors;
  readonly organizationId: string;
}

const STRENGTH: readonly Done[] = ['none', 'flagged', 'cloaked', 'masked', 'blocked'];

export class Screening {
  /** null: the policies could not be loaded, and the request passes. */
  readonly compiled: CompiledPolicy | null;
  values: RestorableValues | null = null;
  private readonly names: GuardrailHeaders;
  private input: StageReport | null = null;
  private output: StageReport | null = null;
  private blockedBy: BlockedBy | null = null;

  private readonly external: ScreeningExternal | null;
  /** Some policies could not be loaded, so the rules are not complete. */
  private readonly isPartial: boolean;

  constructor(
    compiled: CompiledPolicy | null,
    names: GuardrailHeaders,
    external: ScreeningExternal | null = null,
    isPartial = false,
  ) {
    this.compiled = compiled;
    this.names = names;
    this.external = external;
    this.isPartial = isPartial;
  }

  /** Asks the external detectors about texts of the reply. */
  askOfReply(texts: readonly string[]): Promise<ExternalAnswer> {
    const { compiled, external } = this;
    if (compiled?.output == null || external === null) throw new Error('no external detector is for the reply');
    return external.detectors.ask(compiled, compiled.output, external.organizationId, texts);
  }

  /** null: the policies could not be loaded. */
  get organizationId(): string | null {
    return this.external?.organizationId ?? null;
  }

  /** Whether the reply must be screened: a rule applies to it, or it may contain placeholders. */
  get screensReply(): boolean {
    return this.compiled !== null && (stageOf(this.compiled, 'output') !== null || this.values !== null);
  }

  onInput({ report, blocked, restorable }: Pick<ScreenedWhole, 'report' | 'blocked' | 'restorable'>): void {
    this.input = this.withMissing(report);
    this.blockedBy ??= blocked;
    if (restorable.length > 0) this.values = new RestorableValues(restorable);
  }

  onOutput(report: StageReport, blocked: BlockedBy | null): void {
    this.output = this.withMissing(report);
    this.blockedBy ??= blocked;
  }

  private withMissing(report: StageReport): StageReport {
    return this.isPartial ? { ...report, not_scanned: [...(report.not_scanned ?? []), 'policy'] } : report;
  }

  /** The report for the record; null: no stage ran, and none was to run. */
  get report(): ScreeningReport | null {
    if (this.input === null && this.output === null) return null;
    return {
      ...(this.input === null ? {} : { input: this.input }),
      ...(this.output === null ? {} : { output: this.output }),
    };
  }

  /** The name of the rule that acted, for listings; null: none did. */
  get rule(): string | null {
    if (this.blockedBy !== null) return this.blockedBy.rule;
    const findings = [...(this.input?.findings ?? []), ...(this.output?.findings ?? [])];
    return findings.find(({ action }) => action !== 'flag')?.rule ?? findings[0]?.rule ?? null;
  }

  /**
   * The headers for the stages that have run so far. None if nothing could be screened, since `none` would claim that
   * nothing was found.
   */
  headers(): HeaderList {
    const ran = [this.input, this.output].filter((stage) => stage !== null);
    const isUnseen = ran.length > 0 && ran.every(isUnscreened);
    if (this.compiled === null || isUnseen) return NO_HEADERS;
    const strongest = ran.reduce((found, { action }) => Math.max(found, STRENGTH.indexOf(action)), 0);
    if (this.isPartial && strongest === 0) return NO_HEADERS;
    const count = ran.reduce((sum, stage) => sum + findingsIn(stage), 0);
    return [this.names.action, STRENGTH[strongest] ?? 'none', this.names.count, String(count)];
  }

  refusalOf(blocked: BlockedBy, stage: Stage): Refusal {
    const { policy, rule, entity } = blocked;
    return { kind: 'guardrail_blocked', guardrail: { policy, rule, entity, stage } };
  }
}

const NO_HEADERS: HeaderList = [];
