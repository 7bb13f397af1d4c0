// What a request names and asks for, from its scanned JSON or its form: the same answer for every dialect and body.

import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Dialect, ReadRequest, RequestBounds } from '../dialects/dialect.ts';
import { readString, type ScannedRequest } from './scan/request-scanner.ts';
import type { ScannedBody } from './scanned-body.ts';

export function readRequest(dialect: Dialect, { body, scanned, form }: ScannedBody): ReadRequest | Refusal {
  if (form !== null && dialect.form !== undefined) return dialect.form.read(form, body);
  if (scanned === null) return { kind: 'unsupported_media_type' };
  const modelAt = scanned.valueOf('model');
  if (modelAt === null) return { kind: 'missing_model' };
  if (modelAt.kind !== 'string') return { kind: 'model_not_a_string' };
  const requestedModel = readString(body, modelAt);
  if (requestedModel === '') return { kind: 'missing_model', isEmpty: true };
  const bounds = dialect.readBounds(scanned, body);
  return 'kind' in bounds ? bounds : { requestedModel, modelAt, bounds };
}

/** The request with what its headers say beside its body. */
export function withHeaders({ readHeaders }: Dialect, read: ReadRequest, headers: RequestHeaders): ReadRequest {
  return readHeaders === undefined ? read : { ...read, bounds: boundsOf(readHeaders, read, headers) };
}

interface RequestHeaders {
  headerValues(name: string): readonly string[];
}

function boundsOf(
  readHeaders: NonNullable<Dialect['readHeaders']>,
  { bounds }: ReadRequest,
  headers: RequestHeaders,
): RequestBounds {
  return readHeaders(bounds, (name) => headers.headerValues(name));
}

/** null: the body is a JSON object that can be read in one way only. */
export function refuseScan(scanned: ScannedRequest): Refusal | null {
  switch (scanned.fault) {
    case null:
      return null;
    case 'invalid_json':
      return { kind: 'invalid_json', offset: scanned.faultOffset };
    case 'invalid_utf8':
      return { kind: 'invalid_utf8' };
    case 'not_an_object':
      return { kind: 'body_not_an_object' };
    case 'too_deep':
      return { kind: 'body_too_deep' };
    case 'duplicate_key':
      return { kind: 'duplicate_key', key: scanned.faultKey ?? '' };
    case 'letter_case':
      return refuseLetterCase(scanned.faultKey ?? '');
  }
}

/**
 * Go's encoding/json, for one, would take such a name for the field itself, and so for another model or limit than was
 * checked here. The names that are joined without underscores (`maxTokens`) are refused by their own.
 */
export function refuseLetterCase(field: string): Refusal {
  return { kind: 'invalid_field', field, reason: 'its name must be in small letters, as it stands here' };
}
