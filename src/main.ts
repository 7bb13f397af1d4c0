// The entry point: runs the command line of this process.

import { runCommandLine } from './commands/command-line.ts';
import { processEnvironment } from './config.ts';

process.exit(
  await runCommandLine(process.argv.slice(2), processEnvironment, {
    print: (text) => process.stdout.write(`${text}\n`),
    complain: (text) => process.stderr.write(`${text}\n`),
  }),
);
