// JSON with amounts as they are written: the numbers of a generation's record are exact, and a float would round them.

/** `names`: the fields whose numbers stay texts, wherever they are. */
export function parseWithAmounts(json: string, names: readonly string[]): unknown {
  const pattern = new RegExp(`("(?:${names.join('|')})"\\s*:\\s*)(-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)`, 'g');
  return JSON.parse(json.replace(pattern, '$1"$2"'));
}
