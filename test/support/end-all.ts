// Runs the clean-up steps of a test or a run, the latest first.

/**
 * Runs every step, even if others fail, because whatever a failed clean-up leaves running would outlive the run. Then
 * throws the error, or an AggregateError of several.
 */
export async function endAll(steps: readonly (() => unknown)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const step of steps.toReversed()) {
    try {
      await step();
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length === 1) throw faults[0];
  if (faults.length > 1) throw new AggregateError(faults, 'several steps failed');
}
