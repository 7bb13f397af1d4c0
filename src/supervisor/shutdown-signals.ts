// Signals to a supervisor: stop, stop now, roll. Losing the terminal means stop too.

import { closeSync, openSync } from 'node:fs';
import type { Clock } from '../platform/clock.ts';

export interface SignalHandlers {
  readonly onStop: (reason: string) => void;
  /** A second request to stop: open requests are cut. */
  readonly onForce: () => void;
  readonly onRoll: () => void;
}

/**
 * One Ctrl-C may arrive twice, from the terminal and from npm or another parent that forwards it. A second key press
 * takes longer.
 */
const SAME_PRESS_MS = 500;

/**
 * npm passes signals to the shell that runs the script, and some shells end without telling us. npm may be killed as
 * well.
 */
const PARENT_POLL_MS = 500;

/**
 * Returns a function that stops listening. With `endsWithParent`, the end of the parent process means stop, even
 * without a channel to it.
 */
export function listenForSignals(
  handlers: SignalHandlers,
  { clock, endsWithParent }: { clock: Clock; endsWithParent: boolean },
): () => void {
  const hadTerminal = hasTerminal();
  let firstStopMs: number | null = null;
  const stop = (reason: string) => {
    const nowMs = clock.monotonicMs();
    if (firstStopMs === null) {
      firstStopMs = nowMs;
      handlers.onStop(reason);
    } else if (nowMs - firstStopMs > SAME_PRESS_MS) handlers.onForce();
  };
  const listeners: [NodeJS.Signals | 'disconnect', () => void][] = [
    ['SIGINT', () => stop('SIGINT')],
    ['SIGTERM', () => firstStopMs === null && stop('SIGTERM')],
    // A closed terminal sends the signal that otherwise requests a rolling restart.
    [
      'SIGHUP',
      () => (hadTerminal && !hasTerminal() ? firstStopMs === null && stop('terminal_closed') : handlers.onRoll()),
    ],
    ['disconnect', () => firstStopMs === null && stop('parent_exited')],
  ];
  for (const [event, listener] of listeners) process.on(event as 'SIGINT', listener);
  if (process.send !== undefined && !process.connected) stop('parent_exited');
  const parentPid = process.ppid;
  const parentWatch = setInterval(() => {
    if (endsWithParent && firstStopMs === null && process.ppid !== parentPid) stop('parent_exited');
  }, PARENT_POLL_MS);
  return () => {
    clearInterval(parentWatch);
    for (const [event, listener] of listeners) process.off(event, listener);
  };
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r+'));
    return true;
  } catch {
    return false;
  }
}
