// A service account of Google's for tests: its key is generated here, and nobody else knows it.

import { createPublicKey, generateKeyPairSync } from 'node:crypto';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

export const SERVICE_ACCOUNT_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
export const SERVICE_ACCOUNT_PUBLIC_KEY = createPublicKey(SERVICE_ACCOUNT_KEY);
