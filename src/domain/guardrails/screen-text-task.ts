// What the worker task screen-text is given.

import type { ApiName } from '../models/apis.ts';
import type { ExternalVerdicts } from './external-texts.ts';
import type { CloakScopes } from './placeholders.ts';
import type { Policy, Stage } from './policy.ts';
import type { TextPart } from './screen-whole.ts';
import type { TextPlaces } from './text-places.ts';

export interface ScreenTextInput {
  /** Of the compiled policy. */
  readonly key: string;
  readonly policies: readonly Policy[];
  readonly api: ApiName;
  readonly stage: Stage;
  readonly places: TextPlaces;
  readonly parts: readonly TextPart[] | null;
  /** A copy of the body, whose memory goes over to the thread. */
  readonly body: Uint8Array;
  readonly scopes: CloakScopes | null;
  readonly values: readonly (readonly [string, string])[] | null;
  readonly verdicts: ExternalVerdicts | null;
}
