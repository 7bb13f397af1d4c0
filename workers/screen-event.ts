// Worker task: screens one stream event that is too big for the event loop.

import { compiledOf } from '../src/domain/guardrails/compiled-by-key.ts';
import { EventScreen } from '../src/domain/guardrails/event-screen.ts';
import { ExternalTexts } from '../src/domain/guardrails/external-texts.ts';
import { packEdits } from '../src/domain/guardrails/packed-edits.ts';
import { RestorableValues } from '../src/domain/guardrails/placeholders.ts';
import type { ScreenEventInput, ScreenEventOutput } from '../src/domain/guardrails/screen-event-task.ts';
import { placeNodes } from '../src/domain/guardrails/text-places.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export default function screenEvent(input: ScreenEventInput): ScreenEventOutput | null {
  const compiled = compiledOf(input);
  // The deadline starts here. If compiling counted, the thread would be killed, and the next one would have to compile
  // again.
  tellBegun(input.begun);
  if (compiled === null) return null;
  const { places, dataStart, dataEnd } = input;
  const bytes = Buffer.from(input.bytes.buffer, input.bytes.byteOffset, input.bytes.byteLength);
  const values = input.values === null ? null : new RestorableValues(input.values);
  const external = (compiled.output?.externals.length ?? 0) > 0 ? new ExternalTexts(null) : null;
  const screen = new EventScreen({ compiled, stage: 'output', placeholders: null, values, external });
  const event = screen.event(bytes, dataStart, dataEnd, placeNodes(places).event);
  const { collected: texts = [], isIncomplete = false } = external ?? {};
  const packed = { ...event, edits: packEdits(event.edits), repeats: packEdits(event.repeats) };
  return { event: packed, report: screen.tally.report(), blocked: screen.tally.blocked, texts, isIncomplete };
}
