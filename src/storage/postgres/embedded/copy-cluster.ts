// A consistent copy of the embedded Postgres while it runs, by its own means for online backups: its files as they are,
// and the log of what was written meanwhile, from which the copy makes itself whole at its first start.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { copyDirectory } from '../../copy-directory.ts';
import { writeFileDurably } from '../../spool/durable-file.ts';

/** A name of the server's documentation ("Base Backup"): contents that a copy must not have, or makes anew. */
const LEFT_OUT = /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\//;
const LEFT_OUT_FILES = new Set(['postmaster.pid', 'postmaster.opts', 'pg_internal.init']);
const LOG_SEGMENT = /^[0-9A-F]{24}$/;

/**
 * The copy is of the instant at which this resolves, or a little before. `dataDirectory` is the running server's.
 * `copyBeside` copies what refers to the database: all that was in it by then is in the copy.
 */
export async function copyCluster(
  url: string,
  dataDirectory: string,
  target: string,
  copyBeside: () => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'tollgate backup' });
  client.on('error', () => undefined); // told by the statement that is under way
  await client.connect();
  try {
    // Keeps the log from the backup's beginning on; it goes with the connection.
    await client.query('SELECT pg_create_physical_replication_slot($1, true, true)', [
      `tollgate_backup_${process.pid}`,
    ]);
    await client.query(`SELECT pg_backup_start('tollgate backup', true)`);
    copyDirectory(dataDirectory, target, isCopied);
    copyBeside();
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    writeFileDurably(join(target, 'backup_label'), rows[0]?.labelfile ?? '');
    copyDirectory(join(dataDirectory, 'pg_wal'), join(target, 'pg_wal'), (path) => LOG_SEGMENT.test(path));
    if (readdirSync(join(target, 'pg_wal')).length === 0) throw new Error('the copy has no log to become whole by');
  } finally {
    await client.end().catch(() => undefined);
  }
}

function isCopied(path: string): boolean {
  return !LEFT_OUT.test(path) && !LEFT_OUT_FILES.has(path.slice(path.lastIndexOf('/') + 1));
}
