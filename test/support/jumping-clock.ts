// Loaded into every process of an installation before its own code (`node --import`). It shifts the time of day by as
// many milliseconds as the file named by CLOCK_OFFSET_FILE says. The monotonic clock is not changed.

import { readFileSync } from 'node:fs';

const file = process.env['CLOCK_OFFSET_FILE'] ?? '';
const LOOK_MS = 50;
const RealDate = Date;
let offsetMs = 0;

function look(): void {
  try {
    offsetMs = Number(readFileSync(file, 'utf8'));
  } catch {
    offsetMs = 0;
  }
}

const now = (): number => RealDate.now() + offsetMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, given: readonly unknown[]) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given) as Date,
  get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
});
look();
setInterval(look, LOOK_MS).unref();
