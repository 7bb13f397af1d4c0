// Writes JSON whose integers may be of any size: a bigint is a number in it, to the digit.

import { randomUUID } from 'node:crypto';

/** Like JSON.stringify for plain values, which refuses bigints. (`JSON.rawJSON` is not in Node.js 20.) */
export function writeJson(value: object): string {
  let mark = '';
  const json = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member !== 'bigint') return member;
    // The mark is random, so that no text of the value has it.
    if (mark === '') mark = randomUUID();
    return `${mark}${member}`;
  });
  return mark === '' ? json : json.replaceAll(new RegExp(`"${mark}(-?[0-9]+)"`, 'g'), '$1');
}
