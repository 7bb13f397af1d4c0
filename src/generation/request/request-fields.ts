// Reads the control fields that the text dialects share, from where the scanner found them.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import { readInteger, readString, type ScannedRequest } from './scan/request-scanner.ts';
import type { ControlKey } from './scan/scanned-keys.ts';

/** A boolean; false when absent or null, a refusal when it is no boolean. */
export function readFlag(scanned: ScannedRequest, field: ControlKey): boolean | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null' || value.kind === 'false') return false;
  return value.kind === 'true' ? true : { kind: 'invalid_field', field, reason: 'must be true or false' };
}

/** "In digits alone", since `10.0` and `1e1` are whole numbers too. Larger numbers would be rounded. */
const COUNT_REASON = `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, in digits alone`;

/** A whole non-negative number, null when absent or null, a refusal otherwise. */
export function readCount(scanned: ScannedRequest, body: Buffer, field: ControlKey): number | null | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null') return null;
  return readInteger(body, value) ?? { kind: 'invalid_field', field, reason: COUNT_REASON };
}

/** Of the model with the longest prompt for tools, by Anthropic's documentation. */
const TOOL_PROMPT_TOKENS = 530;
/** Of a tool that the provider defines: of the longest one, the computer. */
const DEFINED_TOOL_TOKENS = 1_250;

/**
 * Bounds the prompt that providers of Claude add for tools, wherever the model is served. It is billed as input, and a
 * few bytes of a request can cause it.
 */
export function readToolPrompt(scanned: ScannedRequest): Pick<RequestBounds, 'toolPromptTokens'> {
  if (scanned.valueOf('tools')?.kind !== 'array') return {};
  return { toolPromptTokens: TOOL_PROMPT_TOKENS + scanned.typeCount * DEFINED_TOOL_TOKENS };
}

/** A string; null when absent or no string. For fields that only the provider judges. */
export function readText(scanned: ScannedRequest, body: Buffer, field: ControlKey): string | null {
  const value = scanned.valueOf(field);
  return value !== null && value.kind === 'string' ? readString(body, value) : null;
}
