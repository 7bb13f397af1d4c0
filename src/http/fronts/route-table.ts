// Finds the handler of a path as uWebSockets.js does: the method's own handlers before those of all methods, and among
// them a literal segment before `:name` before `*`.

interface Place<Handler> {
  readonly literals: Map<string, Place<Handler>>;
  /** What follows a segment of any name (`:name`). */
  named: Place<Handler> | null;
  /** The handler of a path that ends here. */
  handler: Handler | null;
  /** The handler of any path that goes on from here (`*`). */
  restHandler: Handler | null;
}

export interface FoundRoute<Handler> {
  readonly handler: Handler;
  /** The parameters of the path as sent, in their order. */
  readonly parameters: readonly string[];
}

export class RouteTable<Handler> {
  private readonly ofMethods = new Map<string, Place<Handler>>();
  private readonly ofAll: Place<Handler> = newPlace();

  /** `method`: in lower case; null: all. `pattern`: literal segments, `:name`, and at its end `*`. */
  add(method: string | null, pattern: string, handler: Handler): void {
    let place = method === null ? this.ofAll : placeIn(this.ofMethods, method);
    for (const segment of segmentsOf(pattern)) {
      if (segment === '*') {
        place.restHandler ??= handler;
        return;
      }
      if (segment.startsWith(':')) place = place.named ??= newPlace();
      else place = placeIn(place.literals, segment);
    }
    place.handler ??= handler;
  }

  /** null: there is none, or the target is no path. */
  find(method: string, path: string): FoundRoute<Handler> | null {
    if (!path.startsWith('/')) return null;
    const segments = segmentsOf(path);
    const own = this.ofMethods.get(method);
    return (own === undefined ? null : search(own, segments, 0, [])) ?? search(this.ofAll, segments, 0, []);
  }
}

function newPlace<Handler>(): Place<Handler> {
  return { literals: new Map(), named: null, handler: null, restHandler: null };
}

function placeIn<Handler>(places: Map<string, Place<Handler>>, name: string): Place<Handler> {
  const known = places.get(name);
  if (known !== undefined) return known;
  const place = newPlace<Handler>();
  places.set(name, place);
  return place;
}

/** The segments after the first slash. */
function segmentsOf(path: string): readonly string[] {
  return path.split('/').slice(1);
}

function search<Handler>(
  place: Place<Handler>,
  segments: readonly string[],
  at: number,
  parameters: readonly string[],
): FoundRoute<Handler> | null {
  const segment = segments[at];
  if (segment === undefined) return place.handler === null ? null : { handler: place.handler, parameters };
  const literal = place.literals.get(segment);
  const found = literal === undefined ? null : search(literal, segments, at + 1, parameters);
  if (found !== null) return found;
  if (place.named !== null && segment !== '') {
    const behind = search(place.named, segments, at + 1, [...parameters, segment]);
    if (behind !== null) return behind;
  }
  return place.restHandler === null ? null : { handler: place.restHandler, parameters };
}
