// Screens a request or a whole reply by the local rules, and then by external detectors: unless it is blocked already,
// they are asked about its texts, and it is screened again with their verdicts.

import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import type { External, Stage } from '../../domain/guardrails/policy.ts';
import {
  type Cloaking,
  isUnscreened,
  type ScreenedWhole,
  type WholeBody,
} from '../../domain/guardrails/screen-whole.ts';
import type { StageReport } from '../../domain/guardrails/screening-report.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { ExternalAnswer } from './external-detectors.ts';
import { type ScreeningWorkers, screenBody } from './screen-body.ts';

export interface AskedWhole extends ScreenedWhole {
  /**
   * A detector whose failure refuses requests did not answer, or was not asked because not all texts may be sent to it.
   */
  readonly refusedFor?: 'no_answer' | 'not_asked';
}

type Screened = AskedWhole | Promise<AskedWhole>;

/** `ask` asks the external detectors of the stage. */
export interface ScreenedBy {
  readonly workers: ScreeningWorkers;
  readonly ask: (texts: readonly string[]) => Promise<ExternalAnswer>;
}

export function screenAndAsk(
  { workers, ask }: ScreenedBy,
  compiled: CompiledPolicy,
  whole: WholeBody,
  cloaking: Cloaking,
): Screened {
  const askAbout = async (texts: readonly string[]): Promise<AskedWhole> => {
    const { verdicts, silent } = await ask(texts);
    const again = await screenBody(compiled, whole, { ...cloaking, verdicts }, workers);
    if (silent.length === 0) return again;
    const isRefused = silent.some((external) => refusesWithoutAnswer(external, false));
    return { ...again, report: withMissed(again.report), ...(isRefused ? { refusedFor: 'no_answer' } : {}) };
  };
  const goOn = (screened: ScreenedWhole): Screened => {
    const { texts = [], blocked, report } = screened;
    if (blocked !== null) return screened;
    // Some texts cannot be sent to a detector.
    if (report.not_scanned?.includes('external') && mustAnswer(compiled, whole.stage))
      return { ...screened, refusedFor: 'not_asked' };
    return texts.length === 0 ? screened : askAbout(texts);
  };
  const screened = screenBody(compiled, whole, cloaking, workers);
  return screened instanceof Promise ? screened.then(goOn) : goOn(screened);
}

/** Why a request is refused that was not screened completely. null: it was, or it goes on all the same. */
export function refusalOfUnread({ report, refusedFor }: AskedWhole, compiled: CompiledPolicy): Refusal | null {
  const isUnseen = isUnscreened(report) && refusesUnscreened(compiled, 'input');
  if (refusedFor === undefined && !isUnseen) return null;
  // A detector that was asked may answer another time. A text that cannot be read, or is too much to be sent, stays so.
  const mayPass = refusedFor === 'no_answer' || report.not_scanned?.includes('timeout') === true;
  return { kind: mayPass ? 'guardrail_unavailable' : 'guardrail_unread', unread: 'input' };
}

/**
 * Whether unscreened text is refused: by the policy, or because a detector must answer and cannot be asked about it.
 */
export function refusesUnscreened(compiled: CompiledPolicy, stage: Stage, isStream = false): boolean {
  return compiled.onFailure === 'refuse' || mustAnswer(compiled, stage, isStream);
}

/** Whether some detector of the stage refuses texts that it has not judged. */
export function mustAnswer(compiled: CompiledPolicy, stage: Stage, isStream = false): boolean {
  const { externals = [] } = stageOf(compiled, stage) ?? {};
  return externals.some(({ external }) => refusesWithoutAnswer(external, isStream));
}

/** A detector that is asked after a stream has passed cannot refuse the stream. */
export function refusesWithoutAnswer({ onFailure, output }: External, isStream: boolean): boolean {
  const isBehind = isStream && output === 'after';
  return onFailure === 'refuse' && !isBehind;
}

function withMissed(report: StageReport): StageReport {
  const { not_scanned: missed = [] } = report;
  return missed.includes('external') ? report : { ...report, not_scanned: [...missed, 'external'] };
}
