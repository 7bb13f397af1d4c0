// Kinds of settings: how each is written, and what an operator is told who wrote it otherwise.

import { z } from 'zod';

/** A setting that must be a whole number; `mustBe` tells the operator so. */
export function wholeNumber(min: number, max: number) {
  const mustBe = `must be an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, mustBe)
    .transform(Number)
    .refine((value) => value >= min && value <= max, mustBe)
    .optional();
}

/** From 0 to 1. */
export function share() {
  const mustBe = 'must be a number from 0 to 1';
  return z
    .string()
    .regex(/^[01](\.\d{1,9})?$/, mustBe)
    .transform(Number)
    .refine((value) => value <= 1, mustBe)
    .optional();
}

export function text(pattern: RegExp, mustBe: string) {
  return z.string().regex(pattern, mustBe).optional();
}

export function address(protocols: readonly string[]) {
  return z
    .string()
    .refine(
      (value) => URL.canParse(value) && protocols.includes(new URL(value).protocol),
      `must be a URL starting with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    )
    .optional();
}

export function flag() {
  return z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .optional();
}

export function listOf<T extends string>(names: readonly T[], mustBe: string) {
  const isName = (text: string): text is T => (names as readonly string[]).includes(text);
  return z
    .string()
    .transform((value) => (value === 'all' ? [...names] : value.split(',').map((name) => name.trim())))
    .refine((list): list is T[] => list.every(isName), mustBe)
    .optional();
}
