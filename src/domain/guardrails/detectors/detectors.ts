// All built-in detectors.

import { apiKey } from './api-key.ts';
import { card } from './card.ts';
import type { Detector } from './detector.ts';
import { email } from './email.ts';
import { iban } from './iban.ts';
import { ip } from './ip.ts';
import { jwt } from './jwt.ts';
import { nationalCodes } from './national-codes.ts';
import { nationalNumbers } from './national-numbers.ts';
import { internationalPhone, northAmericanPhone } from './phone.ts';
import { privateKey } from './private-key.ts';
import { seedPhrase } from './seed-phrase.ts';
import { urlPassword } from './url-password.ts';
import { usSsn } from './us-ssn.ts';
import { walletAddress, walletKey } from './wallet.ts';

export const DETECTORS: readonly Detector[] = [
  email,
  card,
  iban,
  internationalPhone,
  northAmericanPhone,
  usSsn,
  apiKey,
  jwt,
  privateKey,
  urlPassword,
  walletKey,
  walletAddress,
  seedPhrase,
  ip,
  ...nationalNumbers,
  ...nationalCodes,
];
