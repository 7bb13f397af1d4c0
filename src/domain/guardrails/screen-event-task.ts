// The input and output of the worker task screen-event.

import type { BegunFlag } from '../../platform/begun-flag.ts';
import type { PackedPolicies } from './compiled-by-key.ts';
import type { ScreenedEvent } from './event-screen.ts';
import type { PackedEdits } from './packed-edits.ts';
import type { BlockedBy, StageReport } from './screening-report.ts';
import type { TextPlaces } from './text-places.ts';

export interface ScreenEventInput extends PackedPolicies {
  readonly places: TextPlaces;
  /** A copy of the event, whose memory moves to the thread, and where its data lies. */
  readonly bytes: Uint8Array;
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly values: readonly (readonly [string, string])[] | null;
  /** Set once the task runs: its deadline counts from then on. */
  readonly begun: BegunFlag;
}

export interface LargeEvent {
  readonly event: ScreenedEvent;
  readonly report: StageReport;
  readonly blocked: BlockedBy | null;
  /** Texts that external detectors are to be asked about, and whether some were too long for that. */
  readonly texts: readonly string[];
  readonly isIncomplete: boolean;
}

export interface ScreenEventOutput extends Omit<LargeEvent, 'event'> {
  readonly event: Omit<ScreenedEvent, 'edits' | 'repeats'> & {
    readonly edits: PackedEdits;
    readonly repeats: PackedEdits;
  };
}
