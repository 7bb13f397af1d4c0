// What the system refused a command about a file or directory, in words for whoever runs it.

/** What is wrong and what to do about it, by the system's code. */
const WORDS: Readonly<Record<string, string>> = {
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

/** What was tried, by the system's name of it; what is not here was to be used. */
const DEEDS: Readonly<Record<string, string>> = {
  open: 'opened',
  read: 'read',
  write: 'written',
  scandir: 'listed',
  mkdir: 'made',
  rename: 'renamed',
  unlink: 'removed',
  rm: 'removed',
};

/** null: it is something else, such as a fault of ours. */
export function explainFileFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = '', path, syscall = '' } = error as NodeJS.ErrnoException;
  const words = WORDS[code];
  if (words === undefined || path === undefined) return explainFileFault(error.cause);
  return `${path} cannot be ${DEEDS[syscall] ?? 'used'} (${code}): ${words}`;
}
