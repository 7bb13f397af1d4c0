// Imports the headers that an entry of LiteLLM's file sends to its provider, without copying the credentials in them.

import { requestFields } from '../configuration/schema/request-settings.ts';
import { type KeyVariables, variablePart } from './key-variables.ts';
import { type Field, isReference, withReference } from './litellm-file.ts';

export interface ImportedHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly notes: readonly { readonly field: Field; readonly why: string }[];
}

/** Headers in which a provider's key is sent. */
const KEY_HEADERS = /^(authorization|cookie|x-api-key|api-key|proxy-authorization)$/i;
const CREDENTIAL_NAME = /auth|key|token|secret|cookie|password|credential/i;
const CREDENTIAL_VALUE =
  /^(?:bearer|basic|token|api-?key)[\s:=]|(?:^|[^a-z])(?:sk|pk|rk|pat|gsk|ghp|hf|xai)[-_]|^(?:eyJ|AIza|AKIA)/i;
const RANDOM = [
  // Letters and digits mixed. Names with versions and dates (context-1m-2025-08-07) have fewer in a row.
  /(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{16,}/i,
  // Groups like a UUID's.
  /(?:(?=[a-z]*\d)[a-z\d]{4,}-){3,}[a-z\d]{4,}/i,
  // Base64.
  /(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)(?=\S*[_+/=])[A-Za-z\d_\-+/=]{20,}/,
];
const ADDRESS_WITH_USER = /:\/\/[^/\s]*@/;

export function importHeaders(fields: readonly Field[], keys: KeyVariables): ImportedHeaders {
  const headers: Record<string, string> = {};
  const notes: { field: Field; why: string }[] = [];
  for (const field of fields) {
    const { name, text } = field;
    const problem = KEY_HEADERS.test(name) ? 'a key belongs into api_key, its header into auth' : problemOf(field);
    if (problem !== null) {
      notes.push({ field, why: problem });
      continue;
    }
    const isCredential = !isReference(text) && (CREDENTIAL_NAME.test(name) || isLikeCredential(text));
    if (isCredential) {
      const variable = keys.variableOf(`${variablePart(name)}_HEADER`, text);
      notes.push({ field, why: `it may be a credential, so it is not copied: put it into ${variable}` });
      headers[name.toLowerCase()] = `\${${variable}}`;
    } else headers[name.toLowerCase()] = withReference(text);
  }
  return { headers, notes };
}

function isLikeCredential(text: string): boolean {
  return [CREDENTIAL_VALUE, ...RANDOM, ADDRESS_WITH_USER].some((pattern) => pattern.test(text));
}

/** Why our providers may not have this header; null: they may. */
function problemOf({ name, text }: Field): string | null {
  const checked = requestFields.headers.safeParse({ [name]: withReference(text) });
  const [issue] = checked.error?.issues ?? [];
  if (issue === undefined) return null;
  return issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
}
