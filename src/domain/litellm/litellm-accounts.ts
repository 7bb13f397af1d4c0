// Imports the accounts in LiteLLM's file with which tokens are obtained instead of a key: Google's, Entra's and AWS's.

import type { KeyVariables } from './key-variables.ts';
import { type Field, fieldOf, isReference, textOf, withReference } from './litellm-file.ts';

export interface ImportedAccount {
  /** Fields of the provider, in the terms of our file. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly taken: readonly string[];
  readonly notes: readonly string[];
}

interface Entry {
  readonly params: Field;
  readonly keys: KeyVariables;
}

const GOOGLE_VARIABLE = 'GOOGLE_CREDENTIALS';

/** LiteLLM accepts the key's JSON, the path of its file, or the machine's own account. */
export function googleAccount({ params, keys }: Entry): ImportedAccount {
  const written = textOf(params, 'vertex_credentials') ?? mappingText(fieldOf(params, 'vertex_credentials'));
  const isNamed = written !== null && isReference(written);
  const variable = (): string =>
    written === null ? keys.usualOf(GOOGLE_VARIABLE) : keys.variableOf(GOOGLE_VARIABLE, written);
  const credentials = isNamed ? withReference(written) : `\${${variable()}}`;
  return {
    fields: { token: { kind: 'google', credentials } },
    taken: ['vertex_credentials'],
    notes: [`${credentials.slice(2, -1)} has the JSON of a service account's key, not the path of its file`],
  };
}

/**
 * The key's JSON may be written in the file as a mapping. The result identifies the key; it is not written anywhere.
 */
function mappingText(field: Field | undefined): string | null {
  return field === undefined ? null : JSON.stringify(field.fields.map(({ name, text }) => [name, text]));
}

/** null: it has a key, or something else. */
export function entraAccount(entry: Entry): ImportedAccount | null {
  const tenant = textOf(entry.params, 'tenant_id');
  const client = textOf(entry.params, 'client_id');
  const secret = secretOf(entry, 'client_secret', 'AZURE_CLIENT_SECRET');
  if (tenant === null || client === null || secret === null) return null;
  const token = {
    kind: 'entra',
    tenant: withReference(tenant),
    client_id: withReference(client),
    client_secret: secret.text,
  };
  return { fields: { token }, taken: ['tenant_id', 'client_id', 'client_secret'], notes: secret.notes };
}

/** null: it has a key, or something else. */
export function awsAccount(entry: Entry, region: string): ImportedAccount | null {
  const id = textOf(entry.params, 'aws_access_key_id');
  const secret = secretOf(entry, 'aws_secret_access_key', 'AWS_SECRET_ACCESS_KEY');
  const session = secretOf(entry, 'aws_session_token', 'AWS_SESSION_TOKEN');
  if (id === null || secret === null) return null;
  const token = {
    kind: 'aws',
    region,
    access_key_id: withReference(id),
    secret_access_key: secret.text,
    ...(session === null ? {} : { session_token: session.text }),
  };
  return {
    fields: { token },
    taken: ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'],
    notes: [...secret.notes, ...(session?.notes ?? [])],
  };
}

/** A secret in LiteLLM's file is not copied into ours: the result refers to a variable for it. */
function secretOf(
  { params, keys }: Entry,
  name: string,
  usual: string,
): { readonly text: string; readonly notes: readonly string[] } | null {
  const written = textOf(params, name);
  if (written === null) return null;
  if (isReference(written)) return { text: withReference(written), notes: [] };
  const variable = keys.variableOf(usual, written);
  return { text: `\${${variable}}`, notes: [`its ${name} stands in the file: put it into ${variable}`] };
}
