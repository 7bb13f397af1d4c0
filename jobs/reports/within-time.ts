// What a report shows beside the facts, from Postgres: as long as it comes in time. A report is answered without it.

/** A report has to begin within the gateway's time for it. */
const LIMIT_MS = 3_000;

/** `otherwise`: where it fails or does not come in time, which is logged. */
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
