// Reads the file of OpenID providers (SIGN_IN_FILE), with what it takes from the environment.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Environment, processEnvironment } from '../config.ts';
import { interpolate, referencesToPlaceholders } from '../domain/configuration/interpolation.ts';
import { type SignInProvider, signInFile } from '../domain/identity/sign-in-provider.ts';

/** Throws an Error that says what is wrong with the file. */
export function readSignInFile(
  path: string | null,
  environment: Environment = processEnvironment,
): readonly SignInProvider[] {
  if (path === null) return [];
  const missing: string[] = [];
  const text = referencesToPlaceholders(readFileSync(path, 'utf8'));
  const value: unknown = parse(text, (_, one: unknown) => {
    if (typeof one !== 'string') return one;
    const found = interpolate(one, environment);
    missing.push(...found.missing);
    return found.text;
  });
  if (missing.length > 0) throw new Error(`SIGN_IN_FILE: ${missing.join(', ')} is not set`);
  const checked = signInFile.safeParse(value);
  if (!checked.success) throw new Error(`SIGN_IN_FILE: ${z.prettifyError(checked.error)}`);
  return checked.data.oidc;
}
