// The 87 smuggling cases of Http11Probe (github.com/MDA2AV/Http11Probe, MIT): what each case sends, and what RFC 9110
// and 9112 require of a server. The table in test/integration/http11-probe.test.ts has the answers of the fronts.

/**
 * What a case requires. Unless something else is said, closing the connection without an answer is also accepted.
 * - `refused`: 400.
 * - `unknown`: 400 or 501.
 * - `either`: 400, or served.
 * - `last`: 400, or served as the last request of its connection.
 * - `single`: 400, or closed after one answer. A second answer would be to a request that nobody sent.
 * - `clean`: 400, or served; the bytes that follow are read as the request that they are.
 * - `both`: two requests, two answers.
 */
export type Wanted = 'refused' | 'unknown' | 'either' | 'last' | 'single' | 'clean' | 'both';

export interface ProbeCase {
  readonly id: string;
  /** The section that the case is based on. */
  readonly rfc: string;
  readonly wanted: Wanted;
  /**
   * The bytes to send, as Latin-1. The second text is sent after the answer to the first, if the connection is still
   * open.
   */
  readonly sends: readonly string[];
}

const HOST = 'Host: gate.test';

function head(method: string, lines: readonly string[]): string {
  return [`${method} /intended HTTP/1.1`, HOST, ...lines, '', ''].join('\r\n');
}

function post(lines: readonly string[], body = ''): string {
  return head('POST', lines) + body;
}

/** Sends a chunked body, as it stands behind the head. */
const chunks = (body: string): string => post(['Transfer-Encoding: chunked'], body);

/** Sends five bytes of a body, whose length is also given. */
const sized = (transferEncoding: string): string => post([transferEncoding, 'Content-Length: 5'], 'hello');

const FOLLOW_UP = 'GET /follow-up HTTP/1.1\r\nHost: gate.test\r\n\r\n';
const smuggled = (method: string, lines: readonly string[] = []): string =>
  [`${method} /smuggled HTTP/1.1`, HOST, ...lines, '', ''].join('\r\n');

/** An empty chunked body with a request behind it, all within the declared length. */
function hiding(lines: (bytes: number) => readonly string[], method = 'GET'): string {
  const body = `0\r\n\r\n${smuggled(method)}`;
  return post(lines(body.length), body);
}

/** Read as chunks it contains a request; read by its length, only the size line of the first chunk. */
function hidingInChunk(): string {
  const request = smuggled('GET', ['Content-Length: 7']);
  const size = request.length.toString(16);
  return post(
    ['Transfer-Encoding: chunked', `Content-Length: ${size.length + 2}`],
    `${size}\r\n${request}\r\n0\r\n\r\n`,
  );
}

const TE_VALUES = (value: string) => (bytes: number) => [`Content-Length: ${bytes}`, `Transfer-Encoding:${value}`];
const PREFIX = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;

type Row = readonly [id: string, rfc: string, wanted: Wanted, ...sends: string[]];

const LENGTHS: readonly Row[] = [
  ['DUPLICATE-CL', '9110 8.6', 'refused', post(['Content-Length: 5', 'Content-Length: 10'], 'helloworld')],
  ['CL-LEADING-ZEROS', '9110 8.6', 'either', post(['Content-Length: 005'], 'hello')],
  ['CL-NEGATIVE', '9110 8.6', 'refused', post(['Content-Length: -1'])],
  ['CL-TRAILING-SPACE', '9110 5.5', 'either', post(['Content-Length: 5 '], 'hello')],
  ['CL-EXTRA-LEADING-SP', '9110 5.5', 'either', post(['Content-Length:  5'], 'hello')],
  ['CL-COMMA-DIFFERENT', '9110 8.6', 'refused', post(['Content-Length: 5, 10'], 'hello')],
  ['CL-OCTAL', '9110 8.6', 'refused', post(['Content-Length: 0o5'], 'hello')],
  ['CL-HEX-PREFIX', '9110 8.6', 'refused', post(['Content-Length: 0x5'], 'hello')],
  ['CL-INTERNAL-SPACE', '9110 8.6', 'refused', post(['Content-Length: 1 0'], 'hello12345')],
  ['CL-COMMA-SAME', '9110 8.6', 'either', post(['Content-Length: 5, 5'], 'hello')],
  ['CL-COMMA-TRIPLE', '9110 8.6', 'either', post(['Content-Length: 5, 5, 5'], 'hello')],
  ['CL-UNDERSCORE', '9110 8.6', 'refused', post(['Content-Length: 1_0'], 'helloworld')],
  ['CL-NEGATIVE-ZERO', '9110 8.6', 'refused', post(['Content-Length: -0'])],
  ['CL-DOUBLE-ZERO', '9110 8.6', 'either', post(['Content-Length: 00'])],
  ['CL-LEADING-ZEROS-OCTAL', '9110 8.6', 'either', post(['Content-Length: 0200'], 'A'.repeat(200))],
  ['EXPECT-100-CL', '9110 10.1.1', 'either', post(['Content-Length: 5', 'Expect: 100-continue'], 'hello')],
  ['HEAD-CL-BODY', '9110 9.3.2', 'either', `${head('HEAD', ['Content-Length: 5'])}hello`],
  ['OPTIONS-CL-BODY', '9110 9.3.7', 'either', `${head('OPTIONS', ['Content-Length: 5'])}hello`],
];

const CODINGS: readonly Row[] = [
  [
    'CL-TE-BOTH',
    '9112 6.1',
    'either',
    post(['Content-Length: 23', 'Transfer-Encoding: chunked'], 'D\r\nhello-bananas\r\n0\r\n\r\n'),
  ],
  ['TE-XCHUNKED', '9112 6.1', 'unknown', sized('Transfer-Encoding: xchunked')],
  ['TE-TRAILING-SPACE', '9112 6.1', 'last', sized('Transfer-Encoding: chunked ')],
  ['TE-SP-BEFORE-COLON', '9112 5', 'refused', sized('Transfer-Encoding : chunked')],
  ['CLTE-PIPELINE', '9112 6.1', 'either', post(['Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
  ['TECL-PIPELINE', '9112 6.1', 'either', post(['Transfer-Encoding: chunked', 'Content-Length: 30'], '0\r\n\r\n')],
  ['TE-DOUBLE-CHUNKED', '9112 6.1', 'either', sized('Transfer-Encoding: chunked, chunked')],
  ['TE-CASE-MISMATCH', '9112 6.1', 'either', sized('Transfer-Encoding: Chunked')],
  ['TE-NOT-FINAL-CHUNKED', '9112 6.3', 'refused', post(['Transfer-Encoding: chunked, gzip'], '0\r\n\r\n')],
  ['TE-HTTP10', '9112 6.1', 'refused', sized('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0')],
  ['TE-EMPTY-VALUE', '9112 6.1', 'refused', sized('Transfer-Encoding: ')],
  ['TE-LEADING-COMMA', '9110 5.6.1', 'either', sized('Transfer-Encoding: , chunked')],
  ['TE-DUPLICATE-HEADERS', '9112 6.1', 'refused', sized('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity')],
  ['TE-VTAB', '9112 6.1', 'refused', sized('Transfer-Encoding: \vchunked')],
  ['TE-FORMFEED', '9112 6.1', 'refused', sized('Transfer-Encoding: \fchunked')],
  ['TE-NULL', '9112 6.1', 'refused', sized('Transfer-Encoding: chunked\0')],
  ['TE-IDENTITY', '9112 7', 'unknown', sized('Transfer-Encoding: identity')],
  ['TRANSFER_ENCODING', '9112 6.1', 'either', sized('Transfer_Encoding: chunked')],
  ['CHUNKED-WITH-PARAMS', '9112 7', 'either', sized('Transfer-Encoding: chunked;ext=val')],
  ['TE-OBS-FOLD', '9112 5.2', 'last', sized('Transfer-Encoding:\r\n chunked')],
  ['TE-TRAILING-COMMA', '9110 5.6.1', 'either', sized('Transfer-Encoding: chunked,')],
  ['TE-TAB-BEFORE-VALUE', '9110 5.5', 'either', sized('Transfer-Encoding:\tchunked')],
];

const CHUNKS: readonly Row[] = [
  ['CHUNK-BARE-SEMICOLON', '9112 7.1.1', 'refused', chunks('5;\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-EXT-INVALID-TOKEN', '9112 7.1.1', 'refused', chunks('5;bad[=x\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-UNDERSCORE', '9112 7.1', 'refused', chunks('1_0\r\nhello world!!!!!\r\n0\r\n\r\n')],
  ['CHUNK-HEX-PREFIX', '9112 7.1', 'refused', chunks('0x5\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-SIZE-PLUS', '9112 7.1', 'refused', chunks('+5\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-SIZE-TRAILING-OWS', '9112 7.1', 'refused', chunks('5 \r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-LEADING-SP', '9112 7.1', 'refused', chunks(' 5\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-MISSING-TRAILING-CRLF', '9112 7.1', 'refused', chunks('5\r\nhello0\r\n\r\n')],
  ['CHUNK-EXT-LF', '9112 7.1.1', 'either', chunks('5;\nhello\r\n0\r\n\r\n')],
  ['CHUNK-SPILL', '9112 7.1', 'refused', chunks('5\r\nhello!!\r\n0\r\n\r\n')],
  ['CHUNK-LF-TERM', '9112 7.1', 'either', chunks('5\r\nhello\n0\r\n\r\n')],
  ['CHUNK-EXT-CTRL', '9112 7.1.1', 'refused', chunks('5;\0ext\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-EXT-CR', '9112 7.1.1', 'refused', chunks('5;a\rX\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-LF-TRAILER', '9112 7.1', 'either', chunks('5\r\nhello\r\n0\r\n\n')],
  ['CHUNK-NEGATIVE', '9112 7.1', 'refused', chunks('-1\r\nhello\r\n0\r\n\r\n')],
  ['CHUNK-BARE-CR-TERM', '9112 2.2', 'refused', chunks('5\rhello\r\n0\r\n\r\n')],
  ['TRAILER-CL', '9110 6.5.1', 'either', chunks('5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n')],
  ['TRAILER-TE', '9110 6.5.1', 'either', chunks('5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n')],
  ['TRAILER-HOST', '9110 6.5.2', 'either', chunks('5\r\nhello\r\n0\r\nHost: evil.example.com\r\n\r\n')],
  ['TRAILER-AUTH', '9110 6.5.1', 'either', chunks('5\r\nhello\r\n0\r\nAuthorization: Bearer evil\r\n\r\n')],
  ['TRAILER-CONTENT-TYPE', '9110 6.5.1', 'either', chunks('5\r\nhello\r\n0\r\nContent-Type: text/evil\r\n\r\n')],
];

const HEADS: readonly Row[] = [
  ['BARE-CR-HEADER-VALUE', '9112 2.2', 'refused', post(['Content-Length: 5', 'X-Test: val\rue'], 'hello')],
  [
    'ABSOLUTE-URI-HOST-MISMATCH',
    '9112 3.2.2',
    'either',
    head('GET', []).replace('/intended', 'http://other.example.com/intended'),
  ],
  ['MULTIPLE-HOST-COMMA', '9110 7.2', 'refused', head('GET', []).replace(HOST, `${HOST}, other.example.com`)],
];

const HIDDEN: readonly Row[] = [
  ['CLTE-SMUGGLED-GET', '9112 6.1', 'single', hiding(TE_VALUES(' chunked'))],
  [
    'CLTE-SMUGGLED-GET-CL-PLUS',
    '9112 6.1',
    'single',
    hiding((bytes) => [`Content-Length: +${bytes}`, 'Transfer-Encoding: chunked']),
  ],
  [
    'CLTE-SMUGGLED-GET-CL-NON-NUMERIC',
    '9112 6.1',
    'single',
    hiding((bytes) => [`Content-Length: ${bytes}x`, 'Transfer-Encoding: chunked']),
  ],
  [
    'CLTE-SMUGGLED-GET-TE-OBS-FOLD',
    '9112 5.2',
    'single',
    hiding((bytes) => ['Transfer-Encoding:', ' chunked', `Content-Length: ${bytes}`]),
  ],
  ['CLTE-SMUGGLED-HEAD', '9112 6.1', 'single', hiding(TE_VALUES(' chunked'), 'HEAD')],
  ['CLTE-SMUGGLED-GET-TE-TRAILING-SPACE', '9112 6.1', 'single', hiding(TE_VALUES(' chunked '))],
  ['CLTE-SMUGGLED-GET-TE-LEADING-COMMA', '9112 6.1', 'single', hiding(TE_VALUES(' , chunked'))],
  ['CLTE-SMUGGLED-GET-TE-CASE-MISMATCH', '9112 6.1', 'single', hiding(TE_VALUES(' Chunked'))],
  [
    'TE-DUPLICATE-HEADERS-SMUGGLED-GET',
    '9112 6.1',
    'single',
    hiding((bytes) => ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity', `Content-Length: ${bytes}`]),
  ],
  ['TECL-SMUGGLED-GET', '9112 6.1', 'single', hidingInChunk()],
  [
    'DUPLICATE-CL-SMUGGLED-GET',
    '9110 8.6',
    'single',
    post(['Content-Length: 4', `Content-Length: ${4 + smuggled('GET').length}`], `PING${smuggled('GET')}`),
  ],
];

const FOLLOWED: readonly Row[] = [
  [
    'CLTE-CONN-CLOSE',
    '9112 6.1',
    'last',
    post(['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    FOLLOW_UP,
  ],
  [
    'TECL-CONN-CLOSE',
    '9112 6.1',
    'last',
    post(['Transfer-Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n'),
    FOLLOW_UP,
  ],
  [
    'CLTE-DESYNC',
    '9112 6.1',
    'last',
    post(['Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\nX'),
    FOLLOW_UP,
  ],
  [
    'TECL-DESYNC',
    '9112 6.1',
    'last',
    post(['Transfer-Encoding: chunked', 'Content-Length: 30'], '0\r\n\r\nX'),
    FOLLOW_UP,
  ],
  [
    'GET-CL-PREFIX-DESYNC',
    '9110 9.3.1',
    'clean',
    head('GET', [`Content-Length: ${PREFIX.length}`]) + PREFIX,
    `\r\n${FOLLOW_UP}`,
  ],
  ['CL0-BODY-POISON', '9112 6.2', 'clean', post(['Content-Length: 0'], 'X'), FOLLOW_UP],
  ['GET-CL-BODY-DESYNC', '9110 9.3.1', 'clean', `${head('GET', ['Content-Length: 5'])}hello`, FOLLOW_UP],
  ['OPTIONS-CL-BODY-DESYNC', '9110 9.3.7', 'clean', `${head('OPTIONS', ['Content-Length: 5'])}hello`, FOLLOW_UP],
  [
    'EXPECT-100-CL-DESYNC',
    '9110 10.1.1',
    'clean',
    post(['Content-Length: 5', 'Expect: 100-continue'], 'hello'),
    FOLLOW_UP,
  ],
  [
    'OPTIONS-TE-OBS-FOLD',
    '9112 5.2',
    'last',
    `${head('OPTIONS', ['Transfer-Encoding:', ' chunked', 'Content-Length: 5'])}hello`,
    FOLLOW_UP,
  ],
  ['CHUNK-INVALID-SIZE-DESYNC', '9112 7.1', 'last', chunks('+0\r\n\r\nX'), FOLLOW_UP],
  ['PIPELINE-SAFE', '9112 9.3', 'both', head('GET', []), FOLLOW_UP],
];

export const PROBE_CASES: readonly ProbeCase[] = [
  ...LENGTHS,
  ...CODINGS,
  ...CHUNKS,
  ...HEADS,
  ...HIDDEN,
  ...FOLLOWED,
].map(([id, rfc, wanted, ...sends]) => ({ id, rfc, wanted, sends }));
