// Signs webhooks so that their receiver can tell who sent them: Standard Webhooks, HMAC-SHA256 (`v1`), and the secrets
// it uses.

import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function generateWebhookSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** null, or a sentence that says what a secret must be. */
export function webhookSecretProblem(secret: string): string | null {
  const encoded = secret.slice(PREFIX.length);
  const bytes = secret.startsWith(PREFIX) && BASE64.test(encoded) ? Buffer.from(encoded, 'base64').length : 0;
  return bytes >= SECRET_BYTES_MIN && bytes <= SECRET_BYTES_MAX
    ? null
    : `must be "${PREFIX}" and ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes in base64 ` +
        `(\`echo ${PREFIX}$(openssl rand -base64 32)\` makes one)`;
}

/** The headers of a message. A message keeps its id however often it is sent. */
export function signWebhook(
  secret: string,
  message: { id: string; timestampSeconds: number; body: string },
): Readonly<Record<string, string>> {
  const { id, timestampSeconds, body } = message;
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampSeconds), 'webhook-signature': `v1,${signature}` };
}
