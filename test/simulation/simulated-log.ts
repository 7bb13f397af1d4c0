// The log of simulated processes: it writes lines to the event log if that is read.

import type { Log } from '../../src/platform/log.ts';
import type { SimulatedProcess } from './virtual-world.ts';

export function logOf(process: SimulatedProcess): Log {
  const write =
    (level: string) =>
    (fields: unknown, message?: string): void => {
      if (process.world.log === null) return;
      const { err, ...rest } = typeof fields === 'object' ? (fields as Record<string, unknown>) : { message: fields };
      process.world.note(
        `${process.name} ${level}: ${message ?? ''} ${JSON.stringify(rest)}${err instanceof Error ? ` (${err.message})` : ''}`,
      );
    };
  const log = {
    debug: () => undefined,
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return log as unknown as Log;
}
