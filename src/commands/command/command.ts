// The interface of a command: its usage, its summary and its work; and the reading of its arguments.

import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Environment } from '../../config.ts';

export interface CommandContext {
  readonly environment: Environment;
  /** Writes a line to stdout. */
  readonly print: (text: string) => void;
}

export interface Command {
  readonly usage: readonly string[];
  readonly summary: string;
  /** Resolves with the exit code. */
  run(args: readonly string[], context: CommandContext): Promise<number>;
}

/** The command was called with wrong arguments, so its usage is printed. */
export class UsageFault extends Error {
  override readonly name = 'UsageFault';
}

/**
 * Like parseArgs, but throws a UsageFault in our own words. Unknown options are refused, and so is an option that is
 * given twice: which of two organizations is meant cannot be known.
 */
export function parseArguments<const T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) {
  const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true });
  const given = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    checkOption(token, options);
    if (given.has(token.name) && options[token.name]?.multiple !== true)
      throw new UsageFault(`${token.rawName} is given twice`);
    given.add(token.name);
  }
  return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
}

interface OptionToken {
  readonly name: string;
  /** The option as it was written. */
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function checkOption(
  { name, rawName, value, inlineValue }: OptionToken,
  options: NonNullable<ParseArgsConfig['options']>,
): void {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option === undefined || rawName !== `--${name}`) throw new UsageFault(`unknown option "${rawName}"`);
  if (option.type === 'boolean') {
    if (value !== undefined) throw new UsageFault(`${rawName} takes no value`);
    return;
  }
  // An unset variable of the shell gives an empty value.
  if (value === undefined || value === '') throw new UsageFault(`${rawName} needs a value`);
  if (inlineValue !== true && value.startsWith('-') && value !== '-')
    throw new UsageFault(`${rawName} needs a value; one that begins with "-" is written ${rawName}=${value}`);
}

/** Checks that there are exactly as many positional arguments as names. */
export function expectPositionals(positionals: readonly string[], names: readonly string[]): readonly string[] {
  if (positionals.length > names.length) throw new UsageFault(`unexpected argument "${positionals[names.length]}"`);
  const missing = names.find((_, index) => (positionals[index] ?? '') === '');
  if (missing !== undefined) throw new UsageFault(`${missing} is missing`);
  return positionals;
}

/** Returns the first positional argument, which must be one of these names, and the arguments behind it. */
export function takeAction<const Name extends string>(
  [given = '', ...others]: readonly string[],
  names: readonly Name[],
): readonly [action: Name, others: readonly string[]] {
  const words = names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : `${names[0]}`;
  if (given === '') throw new UsageFault(`${words} is missing`);
  const found = names.find((name) => name === given);
  if (found === undefined) throw new UsageFault(`unknown action "${given}"`);
  return [found, others];
}

/** Returns the only positional argument, which must be one of these names. */
export function expectAction<const Name extends string>(positionals: readonly string[], names: readonly Name[]): Name {
  const [action, others] = takeAction(positionals, names);
  expectPositionals(others, []);
  return action;
}

/** Returns the action that the only positional argument names. */
export function chooseAction<Action>(
  positionals: readonly string[],
  actions: Readonly<Record<string, Action>>,
): Action {
  return actions[expectAction(positionals, Object.keys(actions))] as Action;
}

/** The values of options, each of which takes a value. */
export type OptionValues<Options> = { readonly [option in keyof Options]?: string | undefined };

/** Runs a command whose only positional argument names the action, with the options as its parameters. */
export function runAction<const Options extends Readonly<Record<string, { readonly type: 'string' }>>>(
  args: readonly string[],
  context: CommandContext,
  options: Options,
  actions: Readonly<Record<string, (values: OptionValues<Options>, context: CommandContext) => Promise<number>>>,
): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  return chooseAction(positionals, actions)(values as OptionValues<Options>, context);
}

export function requireOption(value: string | undefined, name: string): string {
  if (value === undefined) throw new UsageFault(`--${name} is missing`);
  return value;
}
