// A command line: finds its command, runs it, and turns its result or error into output and an exit code.

import { ConfigFault, type Environment } from '../config.ts';
import { explainFileFault } from '../installation/file-fault.ts';
import { StartFault } from '../installation/start-fault.ts';
import { readVersion } from '../platform/version.ts';
import { SchemaMismatch } from '../storage/schema-fit.ts';
import { type Command, UsageFault } from './command/command.ts';

/** A command is loaded only when it is run, so that a gateway never loads what starts databases. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start.ts')).startCommand,
  models: async () => (await import('./models.ts')).modelsCommand,
  prices: async () => (await import('./prices.ts')).pricesCommand,
  init: async () => (await import('./init.ts')).initCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  import: async () => (await import('./import.ts')).importCommand,
  connect: async () => (await import('./connect.ts')).connectCommand,
  load: async () => (await import('./load.ts')).loadCommand,
  apply: async () => (await import('./apply.ts')).applyCommand,
  provider: async () => (await import('./provider.ts')).providerCommand,
  model: async () => (await import('./model.ts')).modelCommand,
  console: async () => (await import('./console.ts')).consoleCommand,
  logs: async () => (await import('./logs.ts')).logsCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  org: async () => (await import('./org.ts')).orgCommand,
  member: async () => (await import('./member.ts')).memberCommand,
  team: async () => (await import('./team.ts')).teamCommand,
  administrator: async () => (await import('./administrator.ts')).administratorCommand,
  token: async () => (await import('./token.ts')).tokenCommand,
  key: async () => (await import('./key.ts')).keyCommand,
  limit: async () => (await import('./limit.ts')).limitCommand,
  access: async () => (await import('./access.ts')).accessCommand,
  credit: async () => (await import('./credit.ts')).creditCommand,
  wallet: async () => (await import('./wallet.ts')).walletCommand,
  byok: async () => (await import('./byok.ts')).byokCommand,
  'own-key': async () => (await import('./own-key.ts')).ownKeyCommand,
  'master-key': async () => (await import('./master-key.ts')).masterKeyCommand,
  routing: async () => (await import('./routing.ts')).routingCommand,
  guardrail: async () => (await import('./guardrail.ts')).guardrailCommand,
  media: async () => (await import('./media.ts')).mediaCommand,
  reconcile: async () => (await import('./reconcile.ts')).reconcileCommand,
  process: async () => (await import('./process.ts')).processCommand,
  epoch: async () => (await import('./epoch.ts')).epochCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  restore: async () => (await import('./restore.ts')).restoreCommand,
  facts: async () => (await import('./facts.ts')).factsCommand,
  report: async () => (await import('./report.ts')).reportCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  gateway: async () => (await import('./gateway.ts')).gatewayCommand,
  jobs: async () => (await import('./jobs.ts')).jobsCommand,
};

const EXIT_FAILED = 1;
const EXIT_WRONG_USE = 2;

/** Where the command prints, line by line. */
export interface Output {
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
}

/** Resolves with the exit code. Expected problems are printed; nothing is thrown. */
export async function runCommandLine(
  argv: readonly string[],
  environment: Environment,
  output: Output,
): Promise<number> {
  const print = (text: string): number => {
    output.print(text);
    return 0;
  };
  const complain = (lines: readonly string[], exitCode: number): number => {
    output.complain(lines.map((line) => `tollgate: ${line}`).join('\n'));
    return exitCode;
  };
  const [name = '--help', ...args] = argv;
  if (name === '--version' || name === '-v') return print(readVersion());
  if (name === '--help' || name === '-h' || name === 'help') return print(await renderHelp());
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined)
    return complain([`unknown command "${name}"; "tollgate --help" lists the commands`], EXIT_WRONG_USE);
  const command = await load();
  if (args.includes('--help') || args.includes('-h'))
    return print(`usage: ${command.usage.join('\n       ')}\n\n${command.summary}`);
  try {
    return await command.run(args, { environment, print });
  } catch (error) {
    if (error instanceof ConfigFault) return complain(error.lines, EXIT_WRONG_USE);
    if (error instanceof UsageFault)
      return complain([error.message, `usage: ${command.usage.join('\n       ')}`], EXIT_WRONG_USE);
    if (error instanceof StartFault || error instanceof SchemaMismatch)
      return complain(error.message.split('\n'), EXIT_FAILED);
    const refused = explainFileFault(error);
    if (refused !== null) return complain([refused], EXIT_FAILED);
    output.complain(`tollgate: fault\n${error instanceof Error ? describeFault(error) : String(error)}`);
    return EXIT_FAILED;
  }
}

function describeFault(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${describeFault(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}

async function renderHelp(): Promise<string> {
  const commands = await Promise.all(Object.values(COMMANDS).map((load) => load()));
  const lines = commands.flatMap((command) => [
    ...command.usage.map((usage) => `  ${usage}`),
    `      ${command.summary}`,
    '',
  ]);
  return [
    'Tollgate, an inference gateway.',
    '',
    ...lines,
    '  tollgate --help, tollgate --version, tollgate COMMAND --help',
    '',
    'Settings come from the environment; docs/configuration.md lists them.',
  ].join('\n');
}
