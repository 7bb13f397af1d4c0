// The columns of a fact that say what guardrails found (deploy/clickhouse/0006-guardrail-findings.sql). A record has
// the findings as one field. This table splits them into arrays of names and counts.

import type { FindingCount, ScreeningReport, StageReport } from '../../domain/guardrails/screening-report.ts';

type StageName = keyof ScreeningReport;

interface StageFinding extends FindingCount {
  readonly stage: StageName;
}

const STAGES = ['input', 'output'] as const satisfies readonly StageName[];

function stagesOf(report: ScreeningReport): readonly (readonly [StageName, StageReport])[] {
  return STAGES.flatMap((stage) => {
    const found = report[stage];
    return found === undefined ? [] : [[stage, found] as const];
  });
}

function findingsOf(report: ScreeningReport): readonly StageFinding[] {
  return stagesOf(report).flatMap(([stage, { findings = [] }]) => findings.map((found) => ({ ...found, stage })));
}

const COLUMNS: readonly (readonly [name: string, value: (report: ScreeningReport) => readonly unknown[]])[] = [
  ['screened_stages', (report) => stagesOf(report).map(([stage]) => stage)],
  ['screened_missed', (report) => [...new Set(stagesOf(report).flatMap(([, { not_scanned: missed = [] }]) => missed))]],
  ['finding_stages', (report) => findingsOf(report).map(({ stage }) => stage)],
  ['finding_policies', (report) => findingsOf(report).map(({ policy }) => policy)],
  ['finding_rules', (report) => findingsOf(report).map(({ rule }) => rule)],
  ['finding_entities', (report) => findingsOf(report).map(({ entity }) => entity)],
  ['finding_actions', (report) => findingsOf(report).map(({ action }) => action)],
  ['finding_counts', (report) => findingsOf(report).map(({ count }) => count)],
];

const NOTHING: readonly unknown[] = [];

/** The columns in the form that facts.ts needs. */
export const SCREENING_COLUMNS = COLUMNS.map(
  ([name, value]) =>
    [
      name,
      ({ screening }: { readonly screening?: ScreeningReport | null }) =>
        screening == null ? NOTHING : value(screening),
    ] as const,
);
