// The processes that a supervisor started, on disk. If it is killed, its successor waits for them before it starts its
// own.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Log } from '../platform/log.ts';
import { directoryIdentity } from '../storage/directory-identity.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from '../storage/spool/process-identity.ts';

const PROCESSES = z.array(
  z.object({
    name: z.string(),
    pid: z.number().int().positive(),
    processStart: z.string().nullable(),
    bootId: z.string().nullable(),
  }),
);

/**
 * `directory`: the data directory that the journal was written in. In a copy of that directory, the listed processes
 * belong to the original.
 */
const JOURNAL = z.object({ directory: z.string().nullable(), processes: PROCESSES });

interface Entry extends ProcessIdentity {
  readonly name: string;
}

const POLL_MS = 50;
/** Longer than the process that owns Postgres needs to end; it ends last. */
const PREDECESSORS_LIMIT_MS = 20_000;

export class ProcessJournal {
  private readonly path: string;
  private readonly dataDirectory: string;
  private entries: readonly Entry[] = [];

  constructor(dataDirectory: string) {
    this.path = join(dataDirectory, 'processes.json');
    this.dataDirectory = dataDirectory;
  }

  /** Replaces the list with the processes that run now. */
  record(processes: readonly { name: string; pid: number | undefined }[]): void {
    const known = new Map(this.entries.map((entry) => [entry.pid, entry]));
    this.entries = processes.flatMap(({ name, pid }) =>
      pid === undefined ? [] : [known.get(pid) ?? { name, ...readProcessIdentity(pid) }],
    );
    const draft = `${this.path}.draft`;
    const journal = { directory: directoryIdentity(this.dataDirectory), processes: this.entries };
    writeFileSync(draft, JSON.stringify(journal), { mode: 0o600 });
    renameSync(draft, this.path);
  }

  /**
   * Waits for the processes of a killed supervisor, which end by themselves when they notice its death. A process that
   * does not end within the limit is killed.
   */
  async waitForPredecessors(log: Log): Promise<void> {
    let left = this.read().filter(isAlive);
    if (left.length > 0)
      log.warn(
        { processes: left.map(({ name, pid }) => ({ name, childPid: pid })) },
        'waiting for the processes of an earlier start to end',
      );
    for (let waitedMs = 0; left.length > 0 && waitedMs < PREDECESSORS_LIMIT_MS; waitedMs += POLL_MS) {
      await sleep(POLL_MS);
      left = left.filter(isAlive);
    }
    for (const { name, pid } of left) {
      log.warn({ name, childPid: pid }, 'killing a process of an earlier start, because it does not end');
      process.kill(pid, 'SIGKILL');
    }
    while (left.some(isAlive)) await sleep(POLL_MS);
  }

  private read(): readonly Entry[] {
    try {
      const { directory, processes } = JOURNAL.parse(JSON.parse(readFileSync(this.path, 'utf8')));
      return directory === directoryIdentity(this.dataDirectory) ? processes : [];
    } catch {
      // The file is absent at the first start, and may be cut short by a full disk. The installation lock still
      // protects then.
      return [];
    }
  }
}
