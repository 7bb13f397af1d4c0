// Opens a configuration file for commands that change its text, and writes it completely or not at all, and never with
// new mistakes.

import { existsSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type Environment, readConfig } from '../../config.ts';
import { parseWithoutEnvironment } from '../../domain/configuration/parse-without-environment.ts';
import { PRESET_NAMES, type PresetName } from '../../domain/configuration/presets.ts';
import { ConfigurationText } from '../../domain/configuration-text/configuration-text.ts';
import { StartFault } from '../../installation/start-fault.ts';

export const USUAL_FILE = 'tollgate.yaml';

/** The named file, otherwise that of TOLLGATE_CONFIG, otherwise tollgate.yaml. */
export function configurationPath(named: string | undefined, environment: Environment): string {
  return resolve(named ?? readConfig(environment).configurationFile ?? USUAL_FILE);
}

export function openConfigurationText(path: string): ConfigurationText {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const advice = existsSync(path) ? '' : '; "tollgate init" writes one';
    throw new StartFault(`cannot read the configuration file ${path}: ${(error as Error).message}${advice}`, {
      cause: error,
    });
  }
  return expectText(text, path);
}

function expectText(text: string, path: string): ConfigurationText {
  const opened = ConfigurationText.open(text, basename(path));
  if (!opened.ok) throw new StartFault([`${path} cannot be used:`, ...opened.errors].join('\n'));
  return opened.file;
}

/** Throws a StartFault if the changed text has a mistake that the text before did not have. */
export function writeChangedText(path: string, before: string, changed: string): void {
  const known = new Set(mistakesOf(before, basename(path)).map(withoutLine));
  const added = mistakesOf(changed, basename(path)).filter((mistake) => !known.has(withoutLine(mistake)));
  if (added.length > 0)
    throw new StartFault([`${path} is left as it is, since the change would make mistakes:`, ...added].join('\n'));
  writeWhole(path, changed);
}

export function writeWhole(named: string, text: string): void {
  // If the name is a link, its target is written.
  const path = existsSync(named) ? realpathSync(named) : named;
  const partial = join(dirname(path), `.${basename(path)}.partial-${process.pid}`);
  try {
    writeFileSync(partial, text, { mode: existsSync(path) ? statSync(path).mode & 0o777 : 0o644, flag: 'wx' });
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new StartFault(`cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** The mistakes in a file that do not depend on the environment. */
export function mistakesOf(text: string, fileName = USUAL_FILE): readonly string[] {
  return parseWithoutEnvironment(text, {}, 'later', fileName).mistakes;
}

function withoutLine(mistake: string): string {
  return mistake.replace(/^[^:]*:\d+: /, '').replaceAll(/\[\d+\]/g, '[]');
}

/** A provider in the file, as far as it can be read. */
export interface FileProvider {
  readonly id: string;
  readonly preset: PresetName | null;
  readonly baseUrl: string | null;
  /** Its whole entry. */
  readonly entry: unknown;
}

export function providersOf(file: ConfigurationText): readonly FileProvider[] {
  return listOf(file.values['providers']).map((entry) => {
    const { id, preset, base_url: baseUrl } = entry;
    const isPreset = (PRESET_NAMES as readonly unknown[]).includes(preset);
    return {
      id: String(id),
      preset: isPreset ? (preset as PresetName) : null,
      baseUrl: typeof baseUrl === 'string' ? baseUrl : null,
      entry,
    };
  });
}

export function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value)
    ? value.filter((one): one is Record<string, unknown> => typeof one === 'object' && one !== null)
    : [];
}
