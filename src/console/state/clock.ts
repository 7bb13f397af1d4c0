// The current time as a signal. This is the only file that reads the browser's clock.

import { signal } from '@preact/signals';

const MINUTE_MS = 60_000;

/** Changes once a minute, so that a window which ends today moves on at midnight. Up to a minute behind. */
export const now = signal(new Date());

setInterval(() => {
  now.value = new Date();
}, MINUTE_MS);
