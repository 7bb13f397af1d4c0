// Logs go to stderr, because stdout is for the output of commands. Writes are synchronous, so that the last lines
// before an end are not lost.

import { type DestinationStream, pino } from 'pino';

export function logToStderr(): DestinationStream {
  return pino.destination({ dest: 2, sync: true });
}
