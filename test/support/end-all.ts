// Ends what a test or a run has begun, the latest first.

/** Runs every step, whatever the others do: what one leaves running would outlive the run. Throws what was thrown. */
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
