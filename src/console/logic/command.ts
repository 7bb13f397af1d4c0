// Writes commands for a terminal: an API request as curl, and lines of the `tollgate` command.

export interface CommandLine {
  readonly method: string;
  readonly address: string;
  readonly body?: unknown;
}

/** `origin` is the gateway's. The token is a shell variable, so that the command can be shared. */
export function curlOf({ method, address, body }: CommandLine, origin: string): string {
  const verb = method.toUpperCase();
  const parts = ['curl', ...(verb === 'GET' ? [] : ['-X', verb]), quoted(origin + address)];
  const lines = [parts.join(' '), `-H "Authorization: Bearer $TOLLGATE_TOKEN"`];
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}

/** A line of the `tollgate` command with these arguments. */
export function tollgateOf(words: readonly string[]): string {
  return ['tollgate', ...words.map((word) => (PLAIN.test(word) ? word : quoted(word)))].join(' ');
}

/** Words that a shell takes as they are. */
const PLAIN = /^[\w./:=,@+-]+$/;

/** Quotes a text for a POSIX shell, so that the shell expands nothing in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
