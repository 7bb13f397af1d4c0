// Copies the embedded Postgres consistently while it runs, by Postgres' own means for online backups. The copy has the
// data files as they are and the write-ahead log of the time of copying. At its first start, the copied server replays
// the log and is consistent.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { copyDirectory } from '../../copy-directory.ts';
import { writeFileDurably } from '../../spool/durable-file.ts';

/** Paths that the Postgres documentation ("Base Backup") leaves out: a copy must not have them, or makes them anew. */
const LEFT_OUT = /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\//;
const LEFT_OUT_FILES = new Set(['postmaster.pid', 'postmaster.opts', 'pg_internal.init']);
const LOG_SEGMENT = /^[0-9A-F]{24}$/;

/**
 * The copy has the state of the instant at which this resolves, or a little before. `dataDirectory` is the running
 * server's. `copyBeside` copies files that refer to the database. The copy contains everything that was in the database
 * when `copyBeside` ran.
 */
export async function copyCluster(
  url: string,
  dataDirectory: string,
  target: string,
  copyBeside: () => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'tollgate backup' });
  client.on('error', () => undefined); // the running statement throws the error
  await client.connect();
  try {
    // The slot keeps the log from the start of the backup on. It is temporary and ends with the connection.
    await client.query('SELECT pg_create_physical_replication_slot($1, true, true)', [
      `tollgate_backup_${process.pid}`,
    ]);
    await client.query(`SELECT pg_backup_start('tollgate backup', true)`);
    copyDirectory(dataDirectory, target, isCopied);
    copyBeside();
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    writeFileDurably(join(target, 'backup_label'), rows[0]?.labelfile ?? '');
    copyDirectory(join(dataDirectory, 'pg_wal'), join(target, 'pg_wal'), (path) => LOG_SEGMENT.test(path));
    if (readdirSync(join(target, 'pg_wal')).length === 0) throw new Error('the copy has no write-ahead log');
  } finally {
    await client.end().catch(() => undefined);
  }
}

function isCopied(path: string): boolean {
  return !LEFT_OUT.test(path) && !LEFT_OUT_FILES.has(path.slice(path.lastIndexOf('/') + 1));
}
