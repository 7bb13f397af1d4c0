// Reads the control fields that the text dialects have in common, as far as the scanner found them in a request.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import { readInteger, readString, type ScannedRequest } from './scan/request-scanner.ts';
import type { ControlKey } from './scan/scanned-keys.ts';

/** false when absent or null, a refusal where it is no boolean. */
export function readFlag(scanned: ScannedRequest, field: ControlKey): boolean | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null' || value.kind === 'false') return false;
  return value.kind === 'true' ? true : { kind: 'invalid_field', field, reason: 'must be true or false' };
}

/** A whole non-negative number, null when absent or null, a refusal otherwise. */
export function readCount(scanned: ScannedRequest, body: Buffer, field: ControlKey): number | null | Refusal {
  const value = scanned.valueOf(field);
  if (value === null || value.kind === 'null') return null;
  return readInteger(body, value) ?? { kind: 'invalid_field', field, reason: 'must be a whole number, 0 or more' };
}

/** null when absent or no string: for fields that only the provider judges. */
export function readText(scanned: ScannedRequest, body: Buffer, field: ControlKey): string | null {
  const value = scanned.valueOf(field);
  return value !== null && value.kind === 'string' ? readString(body, value) : null;
}
