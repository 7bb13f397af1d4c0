// Worker task: screens a request or a reply that is too much work for the event loop, or has too many hits.

import { compiledOf } from '../src/domain/guardrails/compiled-by-key.ts';
import { packEdits } from '../src/domain/guardrails/packed-edits.ts';
import { RestorableValues } from '../src/domain/guardrails/placeholders.ts';
import type { ScreenTextInput, ScreenTextOutput } from '../src/domain/guardrails/screen-text-task.ts';
import { screenWhole } from '../src/domain/guardrails/screen-whole.ts';
import { tellBegun } from '../src/platform/begun-flag.ts';

export default function screenText(input: ScreenTextInput): ScreenTextOutput | null {
  const compiled = compiledOf(input);
  // The deadline starts here. If compiling counted, the thread would be killed, and the next one would have to compile
  // again.
  tellBegun(input.begun);
  if (compiled === null) return null;
  const { stage, places, parts, scopes, values, verdicts } = input;
  const body = Buffer.from(input.body.buffer, input.body.byteOffset, input.body.byteLength);
  const restorable = values === null ? null : new RestorableValues(values);
  const whole = screenWhole(compiled, { stage, body, places, parts }, { scopes, values: restorable, verdicts });
  return { ...whole, edits: packEdits(whole.edits) };
}
