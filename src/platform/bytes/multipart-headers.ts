// Reads what a form says about itself: the boundary in the request's Content-Type, and the headers of each part (RFC
// 2046, 2183, 7578).

/** What a part's headers say, as far as it matters here. */
export interface PartHeaders {
  /** Byte for byte, as latin1: only compared with ASCII names. */
  readonly name: string;
  readonly isFile: boolean;
  /** The value is written in base64, UTF-16 or the like, so that its bytes are not what is meant. */
  readonly isEncoded: boolean;
}

const MEDIA_TYPE = /^[ \t]*multipart\/form-data(?=[ \t]*(?:;|$))/iy;
const FORM_DATA = /^form-data(?=[ \t]*(?:;|$))/iy;
/** One parameter. The two alternatives inside the quotes exclude each other, so no input makes this slow. */
const PARAMETER = /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\[^])*)"|([^\s"(),;<>@[\\\]{}]+))/y;
const REST = /[ \t]*(?:;[ \t]*)?$/y;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)$/;

/** RFC 2046, 5.1.1: 1 to 70 characters, the last of them no space. */
const QUOTED_BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;
/** Unquoted it would have to be a token; `/:=?` are written all the same and read alike everywhere. */
const PLAIN_BOUNDARY = /^[0-9A-Za-z'+_./:=?-]{1,70}$/;
/**
 * Browsers write `%22` for a quote, other clients `\"`. What either means in a name depends on who reads it, and so
 * does a space around a name: no such name is accepted.
 */
const PLAIN_NAME = /^(?! )[ !#$&-[\]-~\x80-\xff]+(?<! )$/;
const PLAIN_ENCODINGS = ['7bit', '8bit', 'binary'];
/** Charsets in which ASCII characters are written in another way. */
const OTHER_CHARSET = /;[ \t]*charset="?(?:utf-?(?:7|16|32)|ucs-)/i;

interface Parameter {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
  readonly quoted: boolean;
}

/** The boundary of a multipart/form-data body; null when there is none or more than one reading. */
export function readBoundary(contentType: string): string | null {
  const parameters = readParameters(contentType, MEDIA_TYPE);
  if (parameters === null) return null;
  // `boundary*` (RFC 2231) would be another boundary to whoever knows it.
  const boundaries = parameters.filter(({ name }) => name === 'boundary' || name.startsWith('boundary*'));
  const [boundary] = boundaries;
  if (boundary === undefined || boundaries.length > 1 || boundary.name !== 'boundary') return null;
  return (boundary.quoted ? QUOTED_BOUNDARY : PLAIN_BOUNDARY).test(boundary.value) ? boundary.value : null;
}

/**
 * `text` is the header lines without the empty line that ends them, as latin1; null when they are not those of a form's
 * part.
 */
export function readPartHeaders(text: string): PartHeaders | null {
  let disposition: string | null = null;
  let isEncoded = false;
  for (const line of text.split('\r\n')) {
    // Some readers take a bare CR or LF for the end of a line. A folded line has no name, and is refused below.
    if (/[\r\n\0]/.test(line)) return null;
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    switch (name.toLowerCase()) {
      case 'content-disposition':
        if (disposition !== null) return null;
        disposition = value;
        break;
      case 'content-transfer-encoding':
        isEncoded ||= !PLAIN_ENCODINGS.includes(value.trim().toLowerCase());
        break;
      case 'content-type':
        isEncoded ||= OTHER_CHARSET.test(value);
        break;
      default:
    }
  }
  return disposition === null ? null : readDisposition(disposition, isEncoded);
}

function readDisposition(disposition: string, isEncoded: boolean): PartHeaders | null {
  const parameters = readParameters(disposition, FORM_DATA);
  if (parameters === null) return null;
  let name: string | null = null;
  let isFile = false;
  const seen = new Set<string>();
  for (const parameter of parameters) {
    if (seen.has(parameter.name) || parameter.name.startsWith('name*')) return null;
    seen.add(parameter.name);
    if (parameter.name === 'name') name = parameter.value;
    else if (parameter.name === 'filename' || parameter.name.startsWith('filename*')) isFile = true;
  }
  if (name === null || !PLAIN_NAME.test(name) || endsEarlyForSome(disposition)) return null;
  return { name, isFile, isEncoded };
}

/**
 * For browsers a backslash is an ordinary character, so that `\"` ends the quoted text. Then no parameter may follow,
 * which others would take for a part of the text.
 */
function endsEarlyForSome(disposition: string): boolean {
  const escaped = disposition.indexOf('\\"');
  return escaped !== -1 && disposition.includes('=', escaped);
}

function readParameters(header: string, opening: RegExp): Parameter[] | null {
  opening.lastIndex = 0;
  if (!opening.test(header)) return null;
  const parameters: Parameter[] = [];
  let at = opening.lastIndex;
  for (;;) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(header);
    if (match === null) break;
    const [, name = '', quoted, token] = match;
    parameters.push({ name: name.toLowerCase(), value: quoted ?? token ?? '', quoted: quoted !== undefined });
    at = PARAMETER.lastIndex;
  }
  REST.lastIndex = at;
  return REST.test(header) ? parameters : null;
}
