// Bounds the time that a report waits for what it shows from Postgres beside the facts. A report is answered without
// that part when Postgres fails or is late.

/** Leaves the report time to begin within the gateway's own limit. */
const LIMIT_MS = 3_000;

/** Resolves to `otherwise`, and logs a warning, if `work` rejects or takes longer than the limit. */
export async function withinTime<Found>(
  work: Promise<Found>,
  otherwise: Found,
  { log, without }: { readonly log: { warn(fields: object, message: string): void }; readonly without: string },
): Promise<Found> {
  let timeout: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timeout = setTimeout(() => reject(new Error('Postgres did not answer in time')), LIMIT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    log.warn({ err: error }, `a report is shown without ${without}`);
    return otherwise;
  } finally {
    clearTimeout(timeout);
  }
}
