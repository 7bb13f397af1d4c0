// Screens the data of one event of a stream after another. A text that an event has in full is screened as in a body; a
// piece of a longer text is returned with the lane of that text (text-places.ts).

import { Buffer } from 'node:buffer';
import { BodyScreen, type TextEdit } from './body-screen.ts';
import { KIND, type PlaceNode } from './text-places.ts';

/** A piece of a lane's text, without its quotes. */
export interface Piece {
  readonly lane: string;
  readonly as: 'text' | 'fragile' | 'arguments';
  readonly start: number;
  readonly end: number;
  readonly isEscaped: boolean;
  /** Its indexes in the outer and the inner list around it; -1: there is none. */
  indexes: [number, number];
}

export interface ScreenedEvent {
  /** False: the data is not JSON, so its texts are not all known. */
  readonly isWhole: boolean;
  readonly pieces: readonly Piece[];
  /** Edits of the texts that the event has in full. */
  readonly edits: readonly TextEdit[];
  /** Edits of values that repeat a piece token by token; they are made only if the piece is changed. */
  readonly repeats: readonly TextEdit[];
  /** The lanes that end with the event, by their indexes. */
  readonly ends: readonly (readonly [number, number])[];
}

interface Level {
  readonly pieces: number;
  readonly ends: number;
  readonly indexes: [number, number];
}

export class EventScreen extends BodyScreen {
  private pieces: Piece[] = [];
  private repeated: TextEdit[] = [];
  private ends: [number, number][] = [];
  private readonly levels: Level[] = [];

  event(data: Buffer, start: number, end: number, node: PlaceNode): ScreenedEvent {
    this.pieces = [];
    this.repeated = [];
    this.ends = [];
    this.levels.length = 0;
    const isWhole = this.json(data, start, end, node);
    return { isWhole, pieces: this.pieces, edits: this.takeEdits(), repeats: this.repeated, ends: this.ends };
  }

  override onString(node: PlaceNode, start: number, end: number, isEscaped: boolean): void {
    if (node.lane === null) return super.onString(node, start, end, isEscaped);
    if (start === end) return;
    const as = node.kind === KIND.fragile ? 'fragile' : node.kind === KIND.arguments ? 'arguments' : 'text';
    this.pieces.push({ lane: node.lane, as, start, end, isEscaped, indexes: [-1, -1] });
  }

  override onIndex({ index }: PlaceNode, value: number): void {
    const level = this.levels.at(-1);
    if (level !== undefined) level.indexes[index as 0 | 1] = value;
  }

  override onEnds(): void {
    this.ends.push([-1, -1]);
  }

  override onOpen(node: PlaceNode): void {
    super.onOpen(node);
    this.levels.push({ pieces: this.pieces.length, ends: this.ends.length, indexes: [-1, -1] });
  }

  override onRepeats(node: PlaceNode, start: number, end: number): void {
    super.onRepeats(node, start, end);
    this.repeated.push({ start, end, replacement: repeatBytes(node.instead) });
  }

  /** Indexes are set here, since an index may come after the pieces that it belongs to. */
  override onClose(node: PlaceNode): void {
    super.onClose(node);
    const level = this.levels.pop();
    if (level === undefined) return;
    const [outer, within] = level.indexes;
    if (node.ends) this.ends.push([-1, -1]);
    for (let at = level.pieces; at < this.pieces.length; at++) {
      const { indexes } = this.pieces[at] as Piece;
      if (indexes[0] === -1) indexes[0] = outer;
      if (indexes[1] === -1) indexes[1] = within;
    }
    for (let at = level.ends; at < this.ends.length; at++) {
      const indexes = this.ends[at] as [number, number];
      if (indexes[0] === -1) indexes[0] = outer;
      if (indexes[1] === -1) indexes[1] = within;
    }
  }
}

const repeatTexts = new Map<string, Buffer>();

function repeatBytes(text: string): Buffer {
  let bytes = repeatTexts.get(text);
  if (bytes === undefined) {
    bytes = Buffer.from(text);
    repeatTexts.set(text, bytes);
  }
  return bytes;
}
