// Repeats a request whose connection was reset: a gateway that is being replaced may reset a connection whose request
// it never read, and the next process answers.

import { pause } from '../support/waiting.ts';

const ATTEMPTS_MAX = 10;
/** The pause before the repetition, so that the old gateway can close its listening socket. */
const PAUSE_MS = 20;

export async function askAgain<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code !== 'ECONNRESET' || attempt === ATTEMPTS_MAX) throw fault;
      await pause(attempt * PAUSE_MS);
    }
  }
}
