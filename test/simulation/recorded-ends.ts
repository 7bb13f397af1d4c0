// Finds the ends of executions in the text of a spool, without the product's own reader, which the simulation tests.

/** Whether a record of this execution's end is in these texts of a spool. */
export function hasEnd(texts: string, id: string): boolean {
  const quoted = `"${id}",`;
  for (let at = texts.indexOf(quoted); at !== -1; at = texts.indexOf(quoted, at + 1)) {
    if (START_AND_ENDING.test(texts.slice(at + quoted.length, at + quoted.length + BEHIND_ID_LENGTH))) return true;
  }
  return false;
}

/**
 * The fields of a start after its id (its instant relative to the frame's, hold, bytes, tags, label), and then the
 * number of an outcome.
 */
const START_AND_ENDING = /^-?\d+,(?:null|"\d+"),\d+,\[\],null,\d+,-?\d+,/;
const BEHIND_ID_LENGTH = 160;
