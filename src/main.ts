// The entry point: finds the command, runs it, and turns its result or error into output and an exit code.

import { readFileSync } from 'node:fs';
import type { Command } from './commands/command.ts';
import { UsageFault } from './commands/command.ts';
import { ConfigFault, processEnvironment } from './config.ts';
import { SchemaTooNew } from './storage/schema-too-new.ts';
import { StartFault } from './supervisor/start-fault.ts';

/** A command is loaded only when it is run, so that a gateway never loads what starts databases. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./commands/start.ts')).startCommand,
  models: async () => (await import('./commands/models.ts')).modelsCommand,
  prices: async () => (await import('./commands/prices.ts')).pricesCommand,
  init: async () => (await import('./commands/init.ts')).initCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  load: async () => (await import('./commands/load.ts')).loadCommand,
  import: async () => (await import('./commands/import.ts')).importCommand,
  apply: async () => (await import('./commands/apply.ts')).applyCommand,
  provider: async () => (await import('./commands/provider.ts')).providerCommand,
  model: async () => (await import('./commands/model.ts')).modelCommand,
  console: async () => (await import('./commands/console.ts')).consoleCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  org: async () => (await import('./commands/org.ts')).orgCommand,
  member: async () => (await import('./commands/member.ts')).memberCommand,
  team: async () => (await import('./commands/team.ts')).teamCommand,
  administrator: async () => (await import('./commands/administrator.ts')).administratorCommand,
  token: async () => (await import('./commands/token.ts')).tokenCommand,
  key: async () => (await import('./commands/key.ts')).keyCommand,
  limit: async () => (await import('./commands/limit.ts')).limitCommand,
  access: async () => (await import('./commands/access.ts')).accessCommand,
  credit: async () => (await import('./commands/credit.ts')).creditCommand,
  wallet: async () => (await import('./commands/wallet.ts')).walletCommand,
  byok: async () => (await import('./commands/byok.ts')).byokCommand,
  'own-key': async () => (await import('./commands/own-key.ts')).ownKeyCommand,
  'master-key': async () => (await import('./commands/master-key.ts')).masterKeyCommand,
  routing: async () => (await import('./commands/routing.ts')).routingCommand,
  guardrail: async () => (await import('./commands/guardrail.ts')).guardrailCommand,
  media: async () => (await import('./commands/media.ts')).mediaCommand,
  reconcile: async () => (await import('./commands/reconcile.ts')).reconcileCommand,
  epoch: async () => (await import('./commands/epoch.ts')).epochCommand,
  backup: async () => (await import('./commands/backup.ts')).backupCommand,
  restore: async () => (await import('./commands/restore.ts')).restoreCommand,
  facts: async () => (await import('./commands/facts.ts')).factsCommand,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  gateway: async () => (await import('./commands/gateway.ts')).gatewayCommand,
  jobs: async () => (await import('./commands/jobs.ts')).jobsCommand,
};

const EXIT_FAILED = 1;
const EXIT_WRONG_USE = 2;

process.exit(await main(process.argv.slice(2)));

async function main(argv: readonly string[]): Promise<number> {
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
    return await command.run(args, { environment: processEnvironment, print });
  } catch (error) {
    if (error instanceof ConfigFault) return complain(error.lines, EXIT_WRONG_USE);
    if (error instanceof UsageFault)
      return complain([error.message, `usage: ${command.usage.join('\n       ')}`], EXIT_WRONG_USE);
    if (error instanceof StartFault || error instanceof SchemaTooNew)
      return complain(error.message.split('\n'), EXIT_FAILED);
    process.stderr.write(`tollgate: fault\n${error instanceof Error ? describeFault(error) : String(error)}\n`);
    return EXIT_FAILED;
  }
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function complain(lines: readonly string[], exitCode: number): number {
  process.stderr.write(`${lines.map((line) => `tollgate: ${line}`).join('\n')}\n`);
  return exitCode;
}

function describeFault(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${describeFault(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
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
