// Asks the person at the terminal. Without a terminal nobody is asked, and the command only uses its options.

import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';

export interface Prompt {
  /** Resolves with the trimmed answer, or with `usual` if the answer is empty. */
  ask(question: string, usual: string): Promise<string>;
  close(): void;
}

/** null: there is no terminal to ask at. */
export function openPrompt(): Prompt | null {
  return process.stdin.isTTY && process.stdout.isTTY ? promptOn(process.stdin, process.stdout) : null;
}

export function promptOn(input: Readable, output: Writable): Prompt {
  const lines = createInterface({ input, output });
  return {
    async ask(question, usual) {
      const answer = await lines.question(usual === '' ? `${question}: ` : `${question} [${usual}]: `);
      return answer.trim() === '' ? usual : answer.trim();
    },
    close: () => lines.close(),
  };
}
