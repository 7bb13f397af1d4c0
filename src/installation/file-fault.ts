// Explains to the operator why the system refused a command access to a file or directory.

/** The problem and its solution, by the system's error code. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not; run the command as the user whose installation it is, or give this one the right',
  EPERM: 'this user may not; run the command as the user whose installation it is, or give this one the right',
  EROFS: 'its file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'this user’s share of the disk is full',
  ENOTDIR: 'what should be a directory on the way to it is a file',
  EISDIR: 'it is a directory, and should be a file',
  ELOOP: 'symbolic links on the way to it lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** What was tried, by the name of the system call; for other calls the message says "used". */
const ACTIONS: Readonly<Record<string, string>> = {
  open: 'opened',
  read: 'read',
  write: 'written',
  scandir: 'listed',
  mkdir: 'made',
  rename: 'renamed',
  unlink: 'removed',
  rm: 'removed',
};

/** null: the error is not one of these; it may be a fault of ours. */
export function explainFileFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = '', path, syscall = '' } = error as NodeJS.ErrnoException;
  const words = EXPLANATIONS[code];
  if (words === undefined || path === undefined) return explainFileFault(error.cause);
  return `${path} cannot be ${ACTIONS[syscall] ?? 'used'} (${code}): ${words}`;
}
