// Reads what a request names and asks for from its scanned JSON or form, in the same way for every dialect.

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

/** Adds to the request's bounds what its headers say. */
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

/** The refusal of a body by its scan; null: the body is a JSON object that can be read in one way only. */
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
 * Refuses a field whose name has capitals. Some parsers, Go's encoding/json for one, would take it for the field
 * itself, and so for another model or limit than was checked here. A name joined without underscores (`maxTokens`) is
 * refused under the name of its field.
 */
export function refuseLetterCase(field: string): Refusal {
  return { kind: 'invalid_field', field, reason: 'its name must be written in lower case, as shown here' };
}
