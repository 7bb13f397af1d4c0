// Makes a benchmark's child process end when the process that started it does, so that an interrupted run leaves
// nothing behind.

/**
 * Ends this process when its standard input closes: the parent holds the other end and never writes. A terminal is no
 * parent.
 */
export function endWithParent(): void {
  if (process.stdin.isTTY) return;
  process.stdin.on('end', () => process.exit(0));
  process.stdin.on('error', () => process.exit(0));
  process.stdin.resume();
}
