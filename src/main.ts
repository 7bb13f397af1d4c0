// The entry point: runs the command line of this process.

import { runCommandLine } from './commands/command-line.ts';
import { processEnvironment } from './config.ts';

/** These go on when nobody reads what they print any more. */
const SERVICES: ReadonlySet<string | undefined> = new Set(['start', 'gateway', 'jobs']);
/** What a shell shows of a command that died of a closed pipe. */
const EXIT_OUTPUT_CLOSED = 141;

for (const stream of [process.stdout, process.stderr])
  stream.on('error', () => {
    if (!SERVICES.has(process.argv[2])) process.exit(EXIT_OUTPUT_CLOSED);
  });

process.exit(
  await runCommandLine(process.argv.slice(2), processEnvironment, {
    print: (text) => process.stdout.write(`${text}\n`),
    complain: (text) => process.stderr.write(`${text}\n`),
  }),
);
