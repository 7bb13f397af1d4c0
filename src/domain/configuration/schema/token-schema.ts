// The shape of the account that a provider's configuration can have instead of a key: tokens that are valid for some
// hours are obtained with it. Its secret is stored apart, sealed like a key.

import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';
import { CONFIGURED_MAX, entriesAtMost } from './entries-at-most.ts';

const visible = z.string().regex(/^[\x21-\x7e]{1,1000}$/, 'must be visible ASCII characters without spaces');
const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const ENTRA_SCOPE = 'https://cognitiveservices.azure.com/.default';
const ENTRA_AUTHORITY = 'https://login.microsoftonline.com';
const GOOGLE_TOKEN_ADDRESS = 'https://oauth2.googleapis.com/token';

/** Secrets are sent to this address, so it must be encrypted unless it is on this machine. */
function isTokenAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  const isLocal = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]';
  return (protocol === 'https:' || (protocol === 'http:' && isLocal)) && username + password + search + hash === '';
}

const address = z
  .string()
  .refine(isTokenAddress, 'must be an https:// address')
  .transform((text) => text.replace(/\/+$/, ''));
const segment = z.string().regex(/^[A-Za-z0-9._-]{1,200}$/, 'must be letters, digits, ".", "_" or "-"');

const shown = {
  google: { account: visible, scope: visible.default(GOOGLE_SCOPE) },
  entra: {
    tenant: segment,
    client_id: visible,
    scope: visible.default(ENTRA_SCOPE),
    authority: address.default(ENTRA_AUTHORITY),
  },
  aws: { access_key_id: visible, region: segment },
};

/** The account as it is stored and shown, without the secret. */
export const shownToken = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('google'), ...shown.google }),
  z.strictObject({ kind: z.literal('entra'), ...shown.entra }),
  z.strictObject({ kind: z.literal('aws'), ...shown.aws }),
]);

/** The public part of the account with which tokens are obtained. */
export type TokenFields = z.output<typeof shownToken>;

/** The secret part of the account, which is sealed as JSON. */
export type TokenSecret =
  | {
      readonly kind: 'google';
      readonly client_email: string;
      readonly private_key: string;
      readonly private_key_id?: string;
      readonly token_uri: string;
    }
  | { readonly kind: 'entra'; readonly client_secret: string }
  | { readonly kind: 'aws'; readonly secret_access_key: string; readonly session_token?: string };

export interface GivenToken {
  readonly settings: TokenFields;
  /** null: the stored secret stays. */
  readonly secret: TokenSecret | null;
}

const serviceAccount = z.object({
  type: z.literal('service_account'),
  client_email: visible,
  private_key: z.string().refine(isPrivateKey),
  private_key_id: visible.optional(),
  token_uri: z.string().refine(isTokenAddress).default(GOOGLE_TOKEN_ADDRESS),
});

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

const keyFields = entriesAtMost(CONFIGURED_MAX, z.record(z.string(), z.unknown()));

const credentials = z.union([z.string(), keyFields]).transform((given, context) => {
  const { data } = serviceAccount.safeParse(typeof given === 'string' ? parseJson(given) : given);
  if (data !== undefined) return data;
  // The text is itself a secret, so the message quotes nothing of it.
  const isPath = typeof given === 'string' && /^\s*(?:[./~]|[A-Za-z]:\\)\S{1,300}\s*$|^\S{1,300}\.json\s*$/.test(given);
  context.issues.push({
    code: 'custom',
    message:
      "must be the JSON of a service account's key, with its RSA private_key" +
      (isPath ? ', and looks like the path of its file: put what is in the file there' : ''),
    input: null,
  });
  return z.NEVER;
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const givenGoogle = z
  .strictObject({
    kind: z.literal('google'),
    ...shown.google,
    account: visible.optional(),
    credentials: credentials.optional(),
  })
  .transform(({ credentials: key, account, ...others }, context): GivenToken => {
    const name = key?.client_email ?? account;
    const isOther = key !== undefined && account !== undefined && account !== key.client_email;
    if (name === undefined || isOther) {
      const message = isOther ? 'is not the account of credentials' : 'is missing';
      context.issues.push({ code: 'custom', path: [isOther ? 'account' : 'credentials'], message, input: null });
      return z.NEVER;
    }
    const secret = key === undefined ? null : secretOfGoogle(key);
    return { settings: { ...others, account: name }, secret };
  });

function secretOfGoogle(key: z.output<typeof serviceAccount>): TokenSecret {
  const { client_email, private_key, private_key_id, token_uri } = key;
  return {
    kind: 'google',
    client_email,
    private_key,
    ...(private_key_id === undefined ? {} : { private_key_id }),
    token_uri,
  };
}

const givenEntra = z
  .strictObject({ kind: z.literal('entra'), ...shown.entra, client_secret: visible.optional() })
  .transform(
    ({ client_secret, ...settings }): GivenToken => ({
      settings,
      secret: client_secret === undefined ? null : { kind: 'entra', client_secret },
    }),
  );

const givenAws = z
  .strictObject({
    kind: z.literal('aws'),
    ...shown.aws,
    secret_access_key: visible.optional(),
    session_token: z
      .string()
      .regex(/^[\x21-\x7e]{1,4096}$/, 'must be visible ASCII characters without spaces')
      .optional(),
  })
  .transform(
    ({ secret_access_key, session_token, ...settings }): GivenToken => ({
      settings,
      secret:
        secret_access_key === undefined
          ? null
          : { kind: 'aws', secret_access_key, ...(session_token === undefined ? {} : { session_token }) },
    }),
  );

/** The account in a file or a request, with or without its secret. */
export const givenToken = z.discriminatedUnion('kind', [givenGoogle, givenEntra, givenAws]);

/** The member of `token` that is the secret, for messages. */
export const SECRET_MEMBER = {
  google: 'credentials',
  entra: 'client_secret',
  aws: 'secret_access_key',
} as const satisfies Record<TokenFields['kind'], string>;
