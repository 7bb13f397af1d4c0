// Parses a multipart/form-data body into its parts, byte for byte, and refuses an incomplete one, since it came through
// a gateway.

export interface FormPart {
  readonly name: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly content: Buffer;
}

const LINE_END = '\r\n';

/** The parts in their order; null when `body` is not a complete form of this content type. */
export function readMultipart(body: Buffer, contentType: string): FormPart[] | null {
  const boundary = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
  const delimiter = `--${boundary?.[1] ?? boundary?.[2] ?? ''}`;
  if (delimiter === '--' || !body.subarray(0, delimiter.length).equals(Buffer.from(delimiter))) return null;
  const parts: FormPart[] = [];
  let position = delimiter.length;
  // A delimiter is followed by a line end and a part, or by two hyphens and the end.
  while (body.toString('latin1', position, position + 2) === LINE_END) {
    const end = body.indexOf(`${LINE_END}${delimiter}`, position);
    const part = end === -1 ? null : readPart(body.subarray(position + LINE_END.length, end));
    if (part === null) return null;
    parts.push(part);
    position = end + LINE_END.length + delimiter.length;
  }
  return body.toString('latin1', position, position + 2) === '--' ? parts : null;
}

function readPart(bytes: Buffer): FormPart | null {
  const headEnd = bytes.indexOf(`${LINE_END}${LINE_END}`);
  if (headEnd === -1) return null;
  const head = bytes.toString('utf8', 0, headEnd);
  const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1] ?? '';
  const name = parameter(disposition, 'name');
  if (name === null) return null;
  return {
    name,
    filename: parameter(disposition, 'filename'),
    contentType: /^content-type:\s*(.+?)\s*$/im.exec(head)?.[1] ?? null,
    content: bytes.subarray(headEnd + 2 * LINE_END.length),
  };
}

function parameter(disposition: string, name: string): string | null {
  return new RegExp(`(?:^|;)\\s*${name}="([^"]*)"`, 'i').exec(disposition)?.[1]?.replaceAll('%22', '"') ?? null;
}
