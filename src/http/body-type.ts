// Reads from the head of a request what type of body it has, and refuses a body that the endpoint does not take.

import type { Refusal } from '../domain/refusals/refusal.ts';
import { contentCodings } from '../platform/bytes/content-codings.ts';
import type { RequestHead } from './request-head.ts';

export type BodyType = 'json' | 'form';

/** The types of body that an endpoint may take, in the order in which a refusal names them. */
export const JSON_ALONE: readonly BodyType[] = ['json'];
export const FORM_ALONE: readonly BodyType[] = ['form'];
export const FORM_OR_JSON: readonly BodyType[] = ['form', 'json'];

const MEDIA_TYPES: Readonly<Record<BodyType, string>> = { form: 'multipart/form-data', json: 'application/json' };
const JSON_TYPE = /^application\/([\w.+-]+\+)?json[ \t]*(;|$)/i;
const FORM_TYPE = /^multipart\/form-data[ \t]*(;|$)/i;

/**
 * The type of a body, or the refusal of one that is not among those taken. A body without a Content-Type is taken for
 * JSON; a form must have one, which names its boundary.
 */
export function readBodyType(
  head: Pick<RequestHead, 'contentType' | 'headers'>,
  taken: readonly BodyType[],
): BodyType | Refusal {
  if (contentCodings(head.headers).length > 0) return { ...refusalFor(taken), isEncoded: true };
  const type = typeOf(head.contentType);
  return type !== null && taken.includes(type) ? type : refusalFor(taken);
}

function typeOf(contentType: string): BodyType | null {
  if (contentType === 'application/json' || contentType === '' || JSON_TYPE.test(contentType)) return 'json';
  return FORM_TYPE.test(contentType) ? 'form' : null;
}

function refusalFor(taken: readonly BodyType[]): Refusal & { readonly kind: 'unsupported_media_type' } {
  return { kind: 'unsupported_media_type', expected: taken.map((type) => MEDIA_TYPES[type]).join(' or ') };
}
