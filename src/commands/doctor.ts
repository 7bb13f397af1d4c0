// `tollgate doctor`: checks what an installation needs, calls each provider once, and says in plain words what is
// wrong.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, ConfigFault, type Environment, readConfig } from '../config.ts';
import { StartFault } from '../installation/start-fault.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments } from './command/command.ts';
import { readConfigurationFile } from './configuration-file/configuration-file.ts';
import { openConfigurationText, USUAL_FILE } from './configuration-file/configuration-text.ts';
import { examineMachine } from './doctor/examine-machine.ts';
import { examineOwnKeys } from './doctor/examine-own-keys.ts';
import { examineProviders } from './doctor/examine-providers.ts';
import type { Finding } from './doctor/finding.ts';

export const doctorCommand: Command = {
  usage: ['tollgate doctor [--config FILE]'],
  summary:
    'Calls each provider of the configuration file with its key, which costs nothing, and checks this machine: ' +
    'ports, data directory, disk, open files, databases, clock. Prints what is wrong. Exit code 0: nothing.',
  run,
};

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, { config: { type: 'string' } });
  expectPositionals(positionals, []);
  let wrong = 0;
  const show = (findings: readonly Finding[]): void => {
    for (const { kind, text } of findings) {
      if (kind === 'wrong') wrong += 1;
      print(`${kind === 'wrong' ? 'WRONG' : kind.padEnd(5)}  ${text.replaceAll('\n', '\n       ')}`);
    }
  };
  const config = readSettings(environment, show);
  if (config !== null) {
    show(await examineMachine(config));
    show(await examineOwnKeys(environment));
    const path = pathOf(values.config, config);
    if (path === null) {
      show([{ kind: 'note', text: `no configuration file: name one by --config ("tollgate init" writes one)` }]);
    } else {
      show(examineFile(path, environment));
      const file = openOrShow(path);
      if (file !== null) show(await examineProviders(file, config, environment));
    }
  }
  print(wrong === 0 ? 'nothing is wrong' : `${wrong} ${wrong === 1 ? 'thing is' : 'things are'} wrong`);
  return wrong === 0 ? 0 : 1;
}

function readSettings(environment: Environment, show: (findings: readonly Finding[]) => void): Config | null {
  try {
    return readConfig(environment);
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error;
    show(error.lines.map((line): Finding => ({ kind: 'wrong', text: `setting ${line}` })));
    return null;
  }
}

function pathOf(named: string | undefined, config: Config): string | null {
  if (named !== undefined) return resolve(named);
  return config.configurationFile ?? (existsSync(USUAL_FILE) ? resolve(USUAL_FILE) : null);
}

/** The mistakes in the file, including variables that are not set. */
function examineFile(path: string, environment: Environment): Finding[] {
  try {
    readConfigurationFile(path, environment, 'later');
    return [{ kind: 'ok', text: `${path} is a configuration` }];
  } catch (error) {
    if (!(error instanceof StartFault)) throw error;
    return [{ kind: 'wrong', text: error.message }];
  }
}

/** null: the file cannot be read, which has been reported already. */
function openOrShow(path: string): ReturnType<typeof openConfigurationText> | null {
  try {
    return openConfigurationText(path);
  } catch (error) {
    if (error instanceof StartFault) return null;
    throw error;
  }
}
