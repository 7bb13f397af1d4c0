// The input and output of the worker task screen-text.

import type { BegunFlag } from '../../platform/begun-flag.ts';
import type { PackedPolicies } from './compiled-by-key.ts';
import type { ExternalVerdicts } from './external-texts.ts';
import type { PackedEdits } from './packed-edits.ts';
import type { CloakScopes } from './placeholders.ts';
import type { Stage } from './policy.ts';
import type { ScreenedWhole, TextPart } from './screen-whole.ts';
import type { TextPlaces } from './text-places.ts';

export interface ScreenTextInput extends PackedPolicies {
  readonly stage: Stage;
  readonly places: TextPlaces;
  readonly parts: readonly TextPart[] | null;
  /** A copy of the body, whose memory moves to the thread. */
  readonly body: Uint8Array;
  readonly scopes: CloakScopes | null;
  readonly values: readonly (readonly [string, string])[] | null;
  readonly verdicts: ExternalVerdicts | null;
  /** Set once the task runs: its deadline counts from then on. */
  readonly begun: BegunFlag;
}

export interface ScreenTextOutput extends Omit<ScreenedWhole, 'edits'> {
  readonly edits: PackedEdits;
}
