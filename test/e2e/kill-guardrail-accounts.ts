// After a kill run with guardrails: what was recorded of them is what clients saw.

import type { GenerationRow } from './kill-accounts.ts';
import type { SeenResponse } from './kill-load.ts';
import type { KillOrganization } from './kill-world.ts';

/** What was recorded of a stage, in one line. */
function recorded(row: GenerationRow, stage: 'input' | 'output'): string {
  const { action, findings = [], not_scanned: missed = [] } = row.screening?.[stage] ?? { action: 'nothing' };
  const counts = findings.map(({ rule, count }) => `${rule} ${count}`).sort();
  return [action, ...counts, ...missed].join(', ');
}

/**
 * Of every answer that a client has whole: what it saw is what is recorded, and a block is charged by the stage that it
 * happened in. And that all of it happened.
 */
export function compareGuardrails(
  organizations: readonly KillOrganization[],
  seen: readonly SeenResponse[],
  generations: readonly GenerationRow[],
): string[] {
  const guarded = new Set(organizations.filter(({ isGuarded }) => isGuarded).map(({ slug }) => slug));
  if (guarded.size === 0) return [];
  const byId = new Map(generations.map((row) => [row.id, row]));
  const problems: string[] = [];
  const happened = { masked: 0, input: 0, output: 0 };
  for (const response of seen) {
    if (!guarded.has(response.organization) || response.executionId === null) continue;
    const { blocked, masked, isRestored } = response.guardrails;
    const row = byId.get(response.executionId);
    if (blocked !== null) {
      happened[blocked] += 1;
      problems.push(...checkBlocked(response.executionId, row, blocked));
    } else if (response.complete && row !== undefined) {
      happened.masked += masked;
      const output = masked === 0 ? 'none' : `masked, waters ${masked}`;
      const expected = `masked, people 2, projects 1; ${output}`;
      const found = `${recorded(row, 'input')}; ${recorded(row, 'output')}`;
      if (found !== expected) problems.push(`execution ${row.id}: expected guardrails ${expected}; found ${found}`);
      if (!isRestored) problems.push(`execution ${row.id}: the client did not get its address back`);
    }
  }
  for (const [what, count] of Object.entries(happened))
    if (count === 0) problems.push(`guardrails: nothing was ${what === 'masked' ? what : `blocked at the ${what}`}`);
  return problems;
}

function checkBlocked(id: string, row: GenerationRow | undefined, stage: 'input' | 'output'): string[] {
  // The record of a refusal may die with its process: nothing was done for it.
  if (row === undefined) return stage === 'input' ? [] : [`execution ${id} was blocked and is not in the ledger`];
  const outcome = stage === 'input' ? 'refused' : 'output_blocked';
  if (row.outcome !== outcome) return [`execution ${id} was blocked at the ${stage} and ended as ${row.outcome}`];
  const { action } = row.screening?.[stage] ?? { action: 'nothing' };
  return action === 'blocked' ? [] : [`execution ${id} was blocked at the ${stage}, and the record says ${action}`];
}
