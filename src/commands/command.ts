// What a command of the command line is: how it is called, what it says about itself, and how it runs.

import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Environment } from '../config.ts';

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

/** The command was called wrongly: answered with its usage. */
export class UsageFault extends Error {
  override readonly name = 'UsageFault';
}

/** parseArgs, its complaints as a UsageFault; every argument must be known. */
export function parseArguments<const T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageFault(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** The positional arguments, exactly as many as named. */
export function expectPositionals(positionals: readonly string[], names: readonly string[]): readonly string[] {
  if (positionals.length > names.length) throw new UsageFault(`unexpected argument "${positionals[names.length]}"`);
  if (positionals.length < names.length) throw new UsageFault(`${names[positionals.length]} is missing`);
  return positionals;
}

export function requireOption(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new UsageFault(`--${name} is missing`);
  return value;
}
