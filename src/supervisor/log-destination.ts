// Logs go to stderr: stdout is for what a command answers. Writes are synchronous, so that the last lines before an end
// are there.

import { type DestinationStream, pino } from 'pino';

export function logToStderr(): DestinationStream {
  return pino.destination({ dest: 2, sync: true });
}
