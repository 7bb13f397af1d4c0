// Screens a request by the rules that are here, and then by external detectors: they are asked about its texts, unless
// it is blocked already, and the request is screened once more with what they said.

import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import type { Cloaking, ScreenedWhole, WholeBody } from '../../domain/guardrails/screen-whole.ts';
import type { StageReport } from '../../domain/guardrails/screening-report.ts';
import type { DataPlane } from '../plane.ts';
import { screenBody } from './screen-body.ts';

export interface AskedWhole extends ScreenedWhole {
  /** A detector whose failure refuses requests has failed. */
  readonly isRefused?: boolean;
}

type Screened = AskedWhole | Promise<AskedWhole>;

export function screenAndAsk(
  plane: Pick<DataPlane, 'relay' | 'externalDetectors'>,
  compiled: CompiledPolicy,
  whole: WholeBody,
  cloaking: Cloaking,
  organizationId: string,
): Screened {
  const { workers } = plane.relay;
  const goOn = (screened: ScreenedWhole): Screened => {
    const { texts = [], blocked } = screened;
    if (texts.length === 0 || blocked !== null) return screened;
    return ask(screened, texts);
  };
  const ask = async (screened: ScreenedWhole, texts: readonly string[]): Promise<AskedWhole> => {
    const stage = stageOf(compiled, whole.stage);
    if (stage === null) return screened;
    const { verdicts, isMissed, isRefused } = await plane.externalDetectors.ask(compiled, stage, organizationId, texts);
    const again = await screenBody(compiled, whole, { ...cloaking, verdicts }, workers);
    return isMissed ? { ...again, report: withMissed(again.report), isRefused } : again;
  };
  const screened = screenBody(compiled, whole, cloaking, workers);
  return screened instanceof Promise ? screened.then(goOn) : goOn(screened);
}

function withMissed(report: StageReport): StageReport {
  const { not_scanned: missed = [] } = report;
  return missed.includes('external') ? report : { ...report, not_scanned: [...missed, 'external'] };
}
