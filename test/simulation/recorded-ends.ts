// Finds the ends of executions in the text of a spool, without the product's own reader, which the simulation tests.

import { WHOLE_ID } from '../../src/records/record-form.ts';

/** Whether a record of this execution's end is in these texts of a spool. */
export function hasEnd(texts: string, id: string): boolean {
  return [id.slice(ID_TIME_CHARACTERS), WHOLE_ID + id].some((text) => {
    const quoted = `"${text}",`;
    for (let at = texts.indexOf(quoted); at !== -1; at = texts.indexOf(quoted, at + 1)) {
      const behind = texts.slice(at + quoted.length).match(AMOUNT_AND_BYTES);
      if (behind !== null && texts.startsWith(',[', behindNamed(texts, at + quoted.length + behind[0].length)))
        return true;
    }
    return false;
  });
}

const ID_TIME_CHARACTERS = 14;
const AMOUNT_AND_BYTES = /^(?:null|\d+|"\d+"),\d+/;

/** The offset behind what a record has by name, if it has. No text in it has a brace of its own here. */
function behindNamed(texts: string, at: number): number {
  if (!texts.startsWith(',{', at)) return at;
  let depth = 0;
  for (let index = at + 1; index < texts.length; index++) {
    if (texts[index] === '{') depth += 1;
    else if (texts[index] === '}') depth -= 1;
    if (depth === 0) return index + 1;
  }
  return texts.length;
}
