// Waits until what an installation has spooled is in the ledger, and all of it in the facts, however slow the machine.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { listEpochs, listSegments, segmentFileName } from '../../src/storage/spool/spool-directory.ts';
import type { LedgerView } from './ledger-view.ts';
import { waitFor } from './waiting.ts';

/** How long shipping may take on a busy machine before it counts as stuck. */
const STUCK_MS = 120_000;

/** What the jobs process says of it may be as old as its last round; the files and the cursors are not. */
export async function untilShipped({ dataDir }: { readonly dataDir: string }, ledger: LedgerView): Promise<void> {
  await waitFor(
    'the spool to be shipped',
    () => listUnshipped(join(dataDir, 'spool'), ledger),
    (unshipped) => unshipped.length === 0,
    STUCK_MS,
  );
}

/** Of what clients have seen, all that was served. */
export async function untilPosted(
  ledger: LedgerView,
  seen: readonly { readonly status: number | null; readonly executionId: string | null }[],
): Promise<void> {
  const served = seen.filter(({ status }) => status === 200).map(({ executionId }) => executionId);
  await waitFor(
    'what was served to be posted',
    async () => {
      const [row] = await ledger.query(
        "SELECT count(*)::int AS posted FROM generations WHERE id = ANY($1) AND billing_status <> 'pending'",
        [served],
      );
      return Number(row?.posted);
    },
    (posted) => posted === served.length,
    STUCK_MS,
  );
}

/** The segments that end behind their cursors. Those that are gone, alone or with their epoch, were shipped before. */
async function listUnshipped(spoolDirectory: string, ledger: LedgerView): Promise<string[]> {
  const written = listEpochs(spoolDirectory).flatMap((epoch) => {
    const directory = join(spoolDirectory, String(epoch));
    return listSegments(directory).map((segment) => ({
      place: `${epoch}/${segment}`,
      bytes: statSync(join(directory, segmentFileName(segment)), { throwIfNoEntry: false })?.size ?? 0,
    }));
  });
  const cursors = await ledger.query(
    "SELECT epoch || '/' || segment AS place, least(posted_offset, facts_offset)::text AS shipped FROM spool_cursors",
  );
  const shipped = new Map(cursors.map((cursor) => [cursor['place'], Number(cursor['shipped'])]));
  return written.filter(({ place, bytes }) => bytes > (shipped.get(place) ?? 0)).map(({ place }) => place);
}
