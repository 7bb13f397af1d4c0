// A request's body with what was found in it, in whichever form it came.

import type { ScannedForm } from './multipart-scan.ts';
import type { ScannedRequest } from './scan/request-scanner.ts';

/** Exactly one of `scanned` and `form` is there: what the body is. */
export interface ScannedBody {
  readonly body: Buffer;
  readonly scanned: ScannedRequest | null;
  readonly form: ScannedForm | null;
}
