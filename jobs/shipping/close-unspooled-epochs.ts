// Closes epochs of this machine whose process died before it opened its spool, or never learned its epoch because the
// database died. Nothing was leased or written under such an epoch, so no spool will ever show that it ended.

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
  // Spools are listed after the processes were found dead: a process without a spool then never had one.
  const dead = open.filter(
    ({ kind, pid }) => kind === 'gateway' && !isAlive({ pid, processStart: null, bootId: null }),
  );
  const spooled = new Set(listEpochs(spoolDirectory));
  const closed: number[] = [];
  for (const { epoch } of dead) {
    // Another machine may have the same name. Its processes and spools are not visible here, but their beats are.
    if (spooled.has(epoch) || (await isBeating(postgres, epoch))) continue;
    if (await closeUnusedEpoch(postgres, epoch)) closed.push(epoch);
  }
  if (closed.length > 0)
    log.info({ epochs: closed }, 'shipping: epochs whose process died before it began to write are closed');
  return closed;
}
