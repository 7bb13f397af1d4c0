// GET /console and below: the console's page for every address in it, its script and its stylesheet.

import { extname } from 'node:path';
import type { Exchange } from '../../http/exchange.ts';
import { type BuiltConsole, type BuiltFile, PAGE_SECURITY } from './built-console.ts';

/** `built` null: the operator has switched the console off. */
export function serveConsole(built: BuiltConsole | null, exchange: Exchange): void {
  const name = exchange.path.slice('/console/'.length);
  if (built === null) return exchange.refuse({ kind: 'not_found' });
  const asset = built.assets.get(name);
  if (asset !== undefined) return serveFile(exchange, asset);
  // The page does not stand in for a script of another version: a browser would read the page as a script.
  if (extname(name) !== '') return exchange.refuse({ kind: 'not_found' });
  if (built.page === null) return exchange.answer(503, NOT_BUILT_HEADERS, NOT_BUILT);
  serveFile(exchange, built.page);
}

function serveFile(exchange: Exchange, file: BuiltFile): void {
  if (namesVersion(exchange.header('if-none-match'), file.etag))
    return exchange.send({ status: 304, headers: file.headers, body: '', unsentBytes: null });
  const isCompressed = file.brotli !== null && acceptsBrotli(exchange.header('accept-encoding'));
  const bytes = isCompressed ? (file.brotli as Buffer) : file.bytes;
  const headers = isCompressed ? [...file.headers, 'content-encoding', 'br'] : file.headers;
  if (exchange.method === 'head')
    return exchange.send({ status: 200, headers, body: '', unsentBytes: bytes.byteLength });
  exchange.cork(() => {
    exchange.begin(200, headers);
    exchange.end(bytes);
  });
}

/** A proxy that compresses may have made the ETag a weak one. */
function namesVersion(ifNoneMatch: string | null, etag: string): boolean {
  return ifNoneMatch?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag) ?? false;
}

function acceptsBrotli(acceptEncoding: string | null): boolean {
  return /(^|[,\s])br\s*(,|$|;\s*q=(1|0\.\d*[1-9]))/.test(acceptEncoding ?? '');
}

const NOT_BUILT_HEADERS = ['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store', ...PAGE_SECURITY];
const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollgate: the console is not built</title></head>
<body>
<h1>The console is not built</h1>
<p>Run <code>npm run prepare</code> in the folder of Tollgate, then start it again.</p>
<p>Requests are served all the same.</p>
</body>
</html>
`;
