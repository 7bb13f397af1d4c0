// Where a dialect's JSON has text, as a table, and the nodes that a walk over the bytes follows.
//
// A table names shapes. A shape says what the members of an object are; a member that it does not name is text, so that
// a field which did not exist when the table was written is screened. A list is treated like its items.

/**
 * `text`: screened and rewritten; the names in objects below it, too. `fragile`: screened, never rewritten. `opaque`:
 * not looked at. `arguments`: a string that holds JSON. `url`: opaque if it is a `data:` address with base64, else
 * fragile. `base64`: opaque if it can be base64, else fragile. `text_or_tokens`: a text, or its tokens as numbers,
 * which cannot be screened. `echo`: a part of the request that a reply repeats; values are restored there, and nothing
 * is screened again.
 */
export type TextClass = 'text' | 'fragile' | 'opaque' | 'arguments' | 'url' | 'base64' | 'echo' | 'text_or_tokens';

/**
 * A piece of a text that grows from event to event. Such a text is a lane; this name and the indexes around the piece
 * identify it.
 */
export interface LanePlace {
  readonly lane: string;
  readonly as: 'text' | 'fragile' | 'arguments';
}

/** A number that tells lanes apart: the index in the outer list (0), or in the list within it (1). */
export interface IndexPlace {
  readonly index: 0 | 1;
}

/**
 * `ends`: a string here ends the lanes of the objects around it. `null`, `[]`: a value that repeats the text token by
 * token; if the text is changed, the value is replaced by `null` or `[]`.
 */
export type Place = TextClass | LanePlace | IndexPlace | 'ends' | 'null' | '[]' | { readonly shape: string };

export interface Shape {
  readonly members: Readonly<Record<string, Place>>;
  /** The place of a member that `members` does not name. Absent: text. */
  readonly otherwise?: Place;
  /** The class of the names of such members. Absent: text. */
  readonly names?: 'fragile' | 'echo';
  /** The place of a string that stands instead of the object. Absent: text. */
  readonly string?: Place;
  /** For each value of the member `type`: the shape that the object has then. */
  readonly byType?: Readonly<Record<string, string>>;
  /** An object of this shape ends the lanes of its indexes. */
  readonly ends?: true;
}

/** Plain data: it goes to a worker as it is. */
export interface TextPlaces {
  readonly shapes: Readonly<Record<string, Shape>>;
  /** The shape of a request, of a whole reply, and of the data of an event in a stream. */
  readonly request: string;
  readonly reply: string;
  readonly event: string;
}

/**
 * The texts of a JSON schema, as tools and formats have one. Its field names are not rewritten, since answers are read
 * by them.
 */
export const JSON_SCHEMA_TEXTS: Readonly<Record<string, Shape>> = {
  named_schema: { members: { type: 'opaque', name: 'fragile', schema: { shape: 'schema' } } },
  schema: {
    members: {
      type: 'opaque',
      $ref: 'opaque',
      format: 'opaque',
      pattern: 'fragile',
      required: 'fragile',
      properties: { shape: 'properties' },
      $defs: { shape: 'properties' },
      definitions: { shape: 'properties' },
      items: { shape: 'schema' },
      anyOf: { shape: 'schema' },
      allOf: { shape: 'schema' },
      oneOf: { shape: 'schema' },
      additionalProperties: { shape: 'schema' },
    },
    names: 'fragile',
  },
  properties: { members: {}, otherwise: { shape: 'schema' }, names: 'fragile' },
};

export const KIND = {
  text: 0,
  fragile: 1,
  arguments: 2,
  url: 3,
  base64: 4,
  echo: 5,
  opaque: 6,
  index: 7,
  ends: 8,
  repeats: 9,
  shape: 10,
  tokens: 11,
} as const;
export type KindCode = (typeof KIND)[keyof typeof KIND];

export interface PlaceNode {
  readonly kind: KindCode;
  /** null: the place is no piece of a lane. */
  readonly lane: string | null;
  readonly index: number;
  /** The replacement of a value that repeats a changed text. */
  readonly instead: string;
  /** Of an object: the members by the length of their names. */
  members: readonly (readonly MemberNode[] | undefined)[];
  otherwise: PlaceNode;
  /** The node of the names of other members. */
  names: PlaceNode;
  /** The node of a string in the object's place. */
  string: PlaceNode;
  byType: ReadonlyMap<string, PlaceNode> | null;
  ends: boolean;
  /** The visitor has to act when the object ends, so it is told of its begin and end. */
  isWatched: boolean;
}

interface MemberNode {
  readonly name: string;
  readonly node: PlaceNode;
}

export interface PlaceNodes {
  readonly request: PlaceNode;
  readonly reply: PlaceNode;
  readonly event: PlaceNode;
}

interface LeafFields {
  readonly lane?: string;
  readonly index?: number;
  readonly instead?: string;
}

/** Kinds whose values are never objects, so that everything inside an object there is text. */
const TEXT_BELOW: ReadonlySet<KindCode> = new Set([KIND.arguments, KIND.url, KIND.base64, KIND.tokens]);

/** Everything below a leaf has the leaf's kind; if its kind is in TEXT_BELOW, everything below is text. */
function leaf(kind: KindCode, { lane, index = 0, instead = '' }: LeafFields = {}): PlaceNode {
  const node = { kind, lane: lane ?? null, index, instead, members: [], byType: null, ends: false, isWatched: false };
  const whole = node as unknown as PlaceNode;
  whole.otherwise = TEXT_BELOW.has(kind) ? TEXT_NODE : whole;
  whole.names = whole.otherwise;
  whole.string = kind === KIND.tokens ? TEXT_NODE : whole;
  return whole;
}

export const TEXT_NODE: PlaceNode = leaf(KIND.text);
export const OPAQUE_NODE: PlaceNode = leaf(KIND.opaque);

const LEAVES: Readonly<Record<TextClass, PlaceNode>> = {
  text: TEXT_NODE,
  fragile: leaf(KIND.fragile),
  opaque: OPAQUE_NODE,
  arguments: leaf(KIND.arguments),
  url: leaf(KIND.url),
  base64: leaf(KIND.base64),
  echo: leaf(KIND.echo),
  text_or_tokens: leaf(KIND.tokens),
};

const compiled = new WeakMap<TextPlaces, PlaceNodes>();

export function placeNodes(places: TextPlaces): PlaceNodes {
  let nodes = compiled.get(places);
  if (nodes === undefined) {
    nodes = compile(places);
    compiled.set(places, nodes);
  }
  return nodes;
}

function compile({ shapes, request, reply, event }: TextPlaces): PlaceNodes {
  const made = new Map<string, PlaceNode>();
  const nodeOfShape = (name: string): PlaceNode => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const shape = shapes[name];
    if (shape === undefined) throw new Error(`a table of text places names no shape ${name}`);
    const node = leaf(KIND.shape);
    // The node is registered before its members are made, since shapes refer to each other in circles.
    made.set(name, node);
    const members: MemberNode[][] = [];
    for (const [member, place] of Object.entries(shape.members))
      (members[member.length] ??= []).push({ name: member, node: nodeOf(place) });
    node.members = members;
    node.otherwise = nodeOf(shape.otherwise ?? 'text');
    node.names = nodeOf(shape.names ?? 'text');
    node.string = nodeOf(shape.string ?? 'text');
    node.byType =
      shape.byType === undefined
        ? null
        : new Map(Object.entries(shape.byType).map(([type, of]) => [type, nodeOfShape(of)]));
    node.ends = shape.ends === true;
    node.isWatched =
      node.ends ||
      Object.values(shape.members).some((place) =>
        typeof place === 'object' ? 'index' in place : isRepeat(place) || place === 'ends',
      );
    return node;
  };
  const nodeOf = (place: Place): PlaceNode => {
    if (typeof place !== 'string') {
      if ('shape' in place) return nodeOfShape(place.shape);
      if ('index' in place) return leaf(KIND.index, { index: place.index });
      return leaf(KIND[place.as], { lane: place.lane });
    }
    if (isRepeat(place)) return leaf(KIND.repeats, { instead: place });
    return place === 'ends' ? leaf(KIND.ends) : LEAVES[place];
  };
  return { request: nodeOfShape(request), reply: nodeOfShape(reply), event: nodeOfShape(event) };
}

function isRepeat(place: Place): place is 'null' | '[]' {
  return place === 'null' || place === '[]';
}
