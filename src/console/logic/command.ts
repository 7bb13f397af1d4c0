// A call of the API as a line for a terminal.

export interface CommandLine {
  readonly method: string;
  readonly address: string;
  readonly body?: unknown;
}

/** `origin`: where the gateway is. The token is a variable, so that the line can be shared. */
export function curlOf({ method, address, body }: CommandLine, origin: string): string {
  const verb = method.toUpperCase();
  const parts = ['curl', ...(verb === 'GET' ? [] : ['-X', verb]), quoted(origin + address)];
  const lines = [parts.join(' '), `-H "Authorization: Bearer $TOLLGATE_TOKEN"`];
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}

/** A line of the `tollgate` command, of its words. */
export function tollgateOf(words: readonly string[]): string {
  return ['tollgate', ...words.map((word) => (PLAIN.test(word) ? word : quoted(word)))].join(' ');
}

/** What a shell leaves as it is. */
const PLAIN = /^[\w./:=,@+-]+$/;

/** For a POSIX shell: nothing inside is read by it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
