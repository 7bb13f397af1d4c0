// A request's body with the result of its scan, as JSON or as a form.

import type { ScannedForm } from './multipart-scan.ts';
import type { ScannedRequest } from './scan/request-scanner.ts';

/** Exactly one of `scanned` and `form` is not null: the one for the body's format. */
export interface ScannedBody {
  readonly body: Buffer;
  readonly scanned: ScannedRequest | null;
  readonly form: ScannedForm | null;
}
