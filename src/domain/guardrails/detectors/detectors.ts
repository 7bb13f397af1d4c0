// All built-in detectors.

import type { Detector } from './detector.ts';
import { email } from './email.ts';

export const DETECTORS: readonly Detector[] = [email];
