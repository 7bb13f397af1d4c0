// Epochs of this machine whose process died between getting its epoch and opening its spool (or never learned that it
// got one, because the database died in between): nothing was borrowed or written under them, no spool will ever say
// that they ended, and so they are closed here.

import type { Log } from '../../src/platform/log.ts';
import { closeUnusedEpoch, listOpenEpochs } from '../../src/storage/postgres/ledger/epochs.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { isAlive } from '../../src/storage/spool/process-identity.ts';
import { listEpochs } from '../../src/storage/spool/spool-directory.ts';

export interface UnspooledEpochsParts {
  readonly postgres: Postgres;
  readonly spoolDirectory: string;
  readonly machine: string;
  readonly log: Log;
}

/** Returns those that were closed. */
export async function closeUnspooledEpochs({
  postgres,
  spoolDirectory,
  machine,
  log,
}: UnspooledEpochsParts): Promise<number[]> {
  const open = await listOpenEpochs(postgres, machine);
  // Looked at in this order: a process that is dead by now and had no spool by then never had one.
  const dead = open.filter(
    ({ kind, pid }) => kind === 'gateway' && !isAlive({ pid, processStart: null, bootId: null }),
  );
  const spooled = new Set(listEpochs(spoolDirectory));
  const closed: number[] = [];
  for (const { epoch } of dead)
    if (!spooled.has(epoch) && (await closeUnusedEpoch(postgres, epoch))) closed.push(epoch);
  if (closed.length > 0)
    log.info({ epochs: closed }, 'shipping: epochs whose process died before it began to write are closed');
  return closed;
}
