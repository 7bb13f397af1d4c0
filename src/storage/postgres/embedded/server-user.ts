// Chooses the user that the embedded Postgres runs as. Postgres refuses root, and initdb needs an entry in the user
// database.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
  /** True when we run as root and the server is started as another user. */
  readonly dropsPrivileges: boolean;
}

/** Accounts that can own the server when we run as root, in order of preference. */
const UNPRIVILEGED_NAMES = ['postgres', 'nobody'] as const;

/** The user that an existing data directory belongs to, or the one a new directory will belong to. */
export function chooseServerUser(dataDirectory: string): ServerUser {
  const uid = process.getuid?.();
  const gid = process.getgid?.();
  if (uid === undefined || gid === undefined)
    throw new Error('the embedded Postgres needs a POSIX system; set DATABASE_URL instead');
  if (uid !== 0) return { uid, gid, dropsPrivileges: false };
  const owner = statSync(dataDirectory, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, dropsPrivileges: true };
  for (const name of UNPRIVILEGED_NAMES) {
    const found = lookUpUser(name);
    if (found !== null) return { ...found, dropsPrivileges: true };
  }
  throw new Error(
    'Postgres refuses to run as root and this machine has neither a user "postgres" nor "nobody"; add ' +
      'one or set DATABASE_URL',
  );
}

function lookUpUser(name: string): { uid: number; gid: number } | null {
  try {
    const read = (flag: string): number =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    const uid = read('-u');
    const gid = read('-g');
    // Some systems give `nobody` a negative id, which spawn(2) takes as unsigned.
    return Number.isInteger(uid) && uid !== 0 ? { uid: uid >>> 0, gid: gid >>> 0 } : null;
  } catch {
    return null;
  }
}

/** Spawn options that start a process as the server's user. */
export function spawnAs(user: ServerUser): { uid?: number; gid?: number } {
  return user.dropsPrivileges ? { uid: user.uid, gid: user.gid } : {};
}
