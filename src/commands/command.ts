// The interface of a command: its usage, its summary and its work; and the reading of its arguments.

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

/** The command was called wrongly; the answer is its usage. */
export class UsageFault extends Error {
  override readonly name = 'UsageFault';
}

/** Like parseArgs, but throws a UsageFault; unknown options are refused. */
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

/** Checks that there are exactly as many positional arguments as names. */
export function expectPositionals(positionals: readonly string[], names: readonly string[]): readonly string[] {
  if (positionals.length > names.length) throw new UsageFault(`unexpected argument "${positionals[names.length]}"`);
  if (positionals.length < names.length) throw new UsageFault(`${names[positionals.length]} is missing`);
  return positionals;
}

export function requireOption(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new UsageFault(`--${name} is missing`);
  return value;
}
