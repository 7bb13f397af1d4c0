// Closes epochs of this machine whose process died before it opened its spool, or never learned its epoch because the
// database died. Nothing was leased or written under them, so no spool will ever tell that they ended.

import type { Log } from '../../src/platform/log.ts';
import { closeUnusedEpoch, listOpenEpochs } from '../../src/storage/postgres/ledger/epochs.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { isBeating } from '../../src/storage/postgres/processes/beats.ts';
import { isAlive } from '../../src/storage/spool/process-identity.ts';
import { listEpochs } from '../../src/storage/spool/spool-directory.ts';

export interface UnspooledEpochsParts {
  readonly postgres: Postgres;
  readonly spoolDirectory: string;
  readonly machine: string;
  readonly log: Log;
}

/** Returns the epochs that it closed. */
export async function closeUnspooledEpochs({
  postgres,
  spoolDirectory,
  machine,
  log,
}: UnspooledEpochsParts): Promise<number[]> {
  const open = await listOpenEpochs(postgres, machine);
  // The order matters: a process that is dead by now and has no spool after that never had one.
  const dead = open.filter(
    ({ kind, pid }) => kind === 'gateway' && !isAlive({ pid, processStart: null, bootId: null }),
  );
  const spooled = new Set(listEpochs(spoolDirectory));
  const closed: number[] = [];
  for (const { epoch } of dead) {
    // Two machines may have one name: the process of the other one is no process here, and its spool is not here.
    if (spooled.has(epoch) || (await isBeating(postgres, epoch))) continue;
    if (await closeUnusedEpoch(postgres, epoch)) closed.push(epoch);
  }
  if (closed.length > 0)
    log.info({ epochs: closed }, 'shipping: epochs whose process died before it began to write are closed');
  return closed;
}
