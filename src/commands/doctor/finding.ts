// What an examination of an installation finds.

/** `ok`: as it should be. `note`: worth knowing. `wrong`: something will not work. */
export interface Finding {
  readonly kind: 'ok' | 'note' | 'wrong';
  readonly text: string;
}

export const ok = (text: string): Finding => ({ kind: 'ok', text });
export const note = (text: string): Finding => ({ kind: 'note', text });
export const wrong = (text: string): Finding => ({ kind: 'wrong', text });
