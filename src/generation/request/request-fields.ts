// Reads the control fields that the text dialects have in common, as far as the scanner found them in a request.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { RequestBounds } from '../dialects/dialect.ts';
import { readInteger, readString, type ScannedRequest } from './scan/request-scanner.ts';
import type { ControlKey } from './scan/scanned-keys.ts';

/** false when absent or null, a refusal where it is no boolean. */
export function readFlag(scanned: ScannedRequest, field: ControlKey): boolean | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null' || value.kind === 'false') return false;
  return value.kind === 'true' ? true : { kind: 'invalid_field', field, reason: 'must be true or false' };
}

/** `10.0` and `1e1` are whole numbers too, and larger ones would be rounded. */
const COUNT_REASON = `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, in digits alone`;

/** A whole non-negative number, null when absent or null, a refusal otherwise. */
export function readCount(scanned: ScannedRequest, body: Buffer, field: ControlKey): number | null | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null') return null;
  return readInteger(body, value) ?? { kind: 'invalid_field', field, reason: COUNT_REASON };
}

/** By Anthropic's documentation: of the model whose prompt for tools is the longest. */
const TOOL_PROMPT_TOKENS = 530;
/** Of a tool of a kind that the provider has defined: of the computer, the longest one. */
const DEFINED_TOOL_TOKENS = 1_250;

/**
 * What the providers of Claude write for a model to use tools, wherever it is served: few bytes of a request can stand
 * for it, and it is billed as input.
 */
export function readToolPrompt(scanned: ScannedRequest): Pick<RequestBounds, 'toolPromptTokens'> {
  if (scanned.valueOf('tools')?.kind !== 'array') return {};
  return { toolPromptTokens: TOOL_PROMPT_TOKENS + scanned.typeCount * DEFINED_TOOL_TOKENS };
}

/** null when absent or no string: for fields that only the provider judges. */
export function readText(scanned: ScannedRequest, body: Buffer, field: ControlKey): string | null {
  const value = scanned.valueOf(field);
  return value !== null && value.kind === 'string' ? readString(body, value) : null;
}
