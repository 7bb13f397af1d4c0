// Chooses what `tollgate init` writes: providers and the names of their models, from its options or from a person's
// answers.

import type { Environment } from '../../config.ts';
import { expandPreset } from '../../domain/configuration/expand-preset.ts';
import { PRESET_NAMES, PRESETS, type Preset, type PresetName } from '../../domain/configuration/presets.ts';
import { nearestNames } from '../../domain/list-prices/nearest-names.ts';
import { UsageFault } from '../command/command.ts';
import type { Prompt } from '../command/prompt.ts';
import { USUAL_MODELS } from './usual-models.ts';

export interface ChosenProvider {
  readonly preset: PresetName;
  readonly with: Readonly<Record<string, string>>;
  /** The provider's own names; null: nobody has named a model. */
  readonly models: readonly string[] | null;
}

/** Reads `openai`, or `azure,resource=acme-eu`: the fields that the preset needs follow its name. */
export function readProviderOption(text: string, models: readonly string[]): ChosenProvider {
  const [name = '', ...pairs] = text.split(',').map((part) => part.trim());
  const preset = expectPreset(name);
  const values = pairs.map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageFault(`--provider ${name}: must be NAME=VALUE behind the comma, got "${pair}"`);
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  const chosen = { preset, with: Object.fromEntries(values), models: modelsOf(preset, models) };
  const expanded = expandPreset(preset, chosen.with);
  if (!expanded.ok)
    throw new UsageFault(
      `--provider ${name}: ${expanded.message} (--provider ${name},${neededOf(preset)[0] ?? 'NAME'}=...)`,
    );
  return chosen;
}

function expectPreset(name: string): PresetName {
  const found = PRESET_NAMES.find((preset) => preset === name);
  if (found !== undefined) return found;
  const [near] = nearestNames(name, PRESET_NAMES);
  const hint = near === undefined ? '' : ` Is ${near} meant?`;
  throw new UsageFault(
    `--provider: there is no preset "${name}".${hint} There are ${PRESET_NAMES.join(', ')}; docs/providers.md says ` +
      'how any other provider is written out',
  );
}

/** The names of `--model PRESET/NAME` that are for this preset. */
function modelsOf(preset: PresetName, models: readonly string[]): readonly string[] | null {
  const own = models.filter((model) => model.startsWith(`${preset}/`)).map((model) => model.slice(preset.length + 1));
  return own.length > 0 ? own : (USUAL_MODELS[preset] ?? null);
}

/** Throws unless every named model belongs to a chosen provider. */
export function checkModels(models: readonly string[], presets: readonly PresetName[]): void {
  const strange = models.find((model) => !presets.some((preset) => model.startsWith(`${preset}/`)));
  if (strange !== undefined)
    throw new UsageFault(`--model ${strange}: must be PRESET/NAME of a --provider (${presets.join(', ')})`);
}

export async function askProviders(prompt: Prompt, environment: Environment): Promise<readonly ChosenProvider[]> {
  const present = PRESET_NAMES.filter((preset) => (environment[keyVariable(preset) ?? ''] ?? '') !== '');
  const answer = await askUntil(prompt, {
    question: `Which providers do you have? (${PRESET_NAMES.join(', ')})`,
    usual: present.join(', '),
    read: (text) => namesIn(text).map(expectPreset),
    isGood: (presets) => presets.length > 0,
  });
  const chosen: ChosenProvider[] = [];
  for (const preset of new Set(answer)) chosen.push(await askProvider(prompt, preset));
  return chosen;
}

async function askProvider(prompt: Prompt, preset: PresetName): Promise<ChosenProvider> {
  const values: Record<string, string> = {};
  for (const name of neededOf(preset))
    values[name] = await askUntil(prompt, {
      question: `${preset}: ${name}?`,
      usual: '',
      read: (text) => text,
      isGood: (text) => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text),
    });
  const usual = USUAL_MODELS[preset] ?? [];
  const models = namesIn(await prompt.ask(`${preset}: which models?`, usual.join(', ')));
  return { preset, with: values, models: models.length > 0 ? models : null };
}

interface Question<Answer> {
  readonly question: string;
  readonly usual: string;
  readonly read: (text: string) => Answer;
  readonly isGood: (answer: Answer) => boolean;
}

const TRIES_MAX = 3;

async function askUntil<Answer>(prompt: Prompt, { question, usual, read, isGood }: Question<Answer>): Promise<Answer> {
  let complaint = 'no answer';
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const text = await prompt.ask(tries === 0 ? question : `${complaint}\n${question}`, usual);
    try {
      const answer = read(text);
      if (isGood(answer)) return answer;
      complaint = `"${text}" cannot be it.`;
    } catch (error) {
      if (!(error instanceof UsageFault)) throw error;
      complaint = error.message.replace('--provider: ', '');
    }
  }
  throw new UsageFault(complaint);
}

function namesIn(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((name) => name !== '');
}

/**
 * The variable that contains the key, or the account with which tokens are obtained; null: the preset needs neither.
 */
export function keyVariable(name: PresetName): string | null {
  const preset: Preset = PRESETS[name];
  return preset.token === undefined ? preset.keyVariable : ACCOUNT_VARIABLE;
}

/** Contains the JSON of a service account's key. */
const ACCOUNT_VARIABLE = 'GOOGLE_CREDENTIALS';

export function takesToken(name: PresetName): boolean {
  const preset: Preset = PRESETS[name];
  return preset.token !== undefined;
}

/** The fields of `with` that a preset requires. */
function neededOf(name: PresetName): readonly string[] {
  const { parameters = {} }: Preset = PRESETS[name];
  return Object.entries(parameters).flatMap(([key, parameter]) => (parameter.default === undefined ? [key] : []));
}
