// What the head of a request says that its body is, and the refusal of a body that an endpoint does not take.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { RequestHead } from './request-head.ts';

export type BodyType = 'json' | 'form';

/** What an endpoint may take; where there is a choice, without a Content-Type the body is the last one. */
export const JSON_ALONE: readonly BodyType[] = ['json'];
export const FORM_ALONE: readonly BodyType[] = ['form'];
export const FORM_OR_JSON: readonly BodyType[] = ['form', 'json'];

const MEDIA_TYPES: Readonly<Record<BodyType, string>> = { form: 'multipart/form-data', json: 'application/json' };
const JSON_TYPE = /^application\/([\w.+-]+\+)?json[ \t]*(;|$)/i;
const FORM_TYPE = /^multipart\/form-data[ \t]*(;|$)/i;

/**
 * Without a Content-Type a body is taken for what it must be, but a form, whose type names its boundary; one that says
 * it is something else is refused.
 */
export function readBodyType(
  head: Pick<RequestHead, 'contentType' | 'header'>,
  taken: readonly BodyType[],
): BodyType | Refusal {
  if (isEncoded(head.header('content-encoding'))) return { ...refusalFor(taken), isEncoded: true };
  const type = typeOf(head.contentType);
  return type !== null && taken.includes(type) ? type : refusalFor(taken);
}

function typeOf(contentType: string): BodyType | null {
  if (contentType === 'application/json' || contentType === '' || JSON_TYPE.test(contentType)) return 'json';
  return FORM_TYPE.test(contentType) ? 'form' : null;
}

/** An empty list names no coding (RFC 9110, 5.6.1), and no coding is case-sensitive (8.4.1). */
function isEncoded(coding: string | null): boolean {
  return coding !== null && coding !== '' && coding.toLowerCase() !== 'identity';
}

function refusalFor(taken: readonly BodyType[]): Refusal & { readonly kind: 'unsupported_media_type' } {
  return { kind: 'unsupported_media_type', expected: taken.map((type) => MEDIA_TYPES[type]).join(' or ') };
}
