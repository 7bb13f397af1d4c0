// The browser's clock, read in one place.

import { signal } from '@preact/signals';

const MINUTE_MS = 60_000;

/** Moves once a minute, so that a window which ends today ends today. */
export const now = signal(new Date());

setInterval(() => {
  now.value = new Date();
}, MINUTE_MS);
