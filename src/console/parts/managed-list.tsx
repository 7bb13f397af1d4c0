// A card with a listing as a table, the actions on its rows, and their removal after a question.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Answer } from '../api.ts';
import type { Load } from '../state/load.ts';
import type { Pages } from '../state/pages.ts';
import { Confirm } from './form.tsx';
import { Loaded, MoreButton } from './loaded.tsx';
import { Card } from './page.tsx';
import { type Column, Table } from './table.tsx';

export interface Removal<Row> {
  readonly verb: string;
  /** The text of the question before the removal. */
  readonly ask: (row: Row) => string;
  readonly send: (row: Row) => Promise<Answer<unknown>>;
  readonly isFor?: (row: Row) => boolean;
}

interface ManagedListProps<Data, Row> {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly load: Load<Data> & Partial<Pick<Pages<unknown>, 'more'>>;
  readonly rowsOf: (data: Data) => readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly empty: ComponentChildren;
  readonly permission: string;
  readonly actions?: (row: Row) => ComponentChildren;
  readonly removal?: Removal<Row>;
}

export function ManagedList<Data, Row>(props: ManagedListProps<Data, Row>) {
  const { title, note, tools, load, rowsOf, columns, empty, permission, actions, removal } = props;
  const [toRemove, setToRemove] = useState<Row | null>(null);
  const buttons = (row: Row) => (
    <>
      {actions?.(row)}
      {removal !== undefined && (removal.isFor?.(row) ?? true) && (
        <button type="button" class="small danger" onClick={() => setToRemove(row)}>
          {removal.verb}
        </button>
      )}
    </>
  );
  return (
    <Card title={title} note={note} tools={tools}>
      <Loaded load={load} permission={permission} isEmpty={(data) => rowsOf(data).length === 0} empty={empty}>
        {(data) => (
          <Table
            caption={title}
            columns={columns}
            rows={rowsOf(data)}
            actions={actions === undefined && removal === undefined ? undefined : buttons}
          />
        )}
      </Loaded>
      {load.more !== undefined && <MoreButton more={load.more} />}
      {toRemove !== null && removal !== undefined && (
        <Confirm
          title={`${removal.verb}?`}
          verb={removal.verb}
          send={() => removal.send(toRemove)}
          onDone={load.reload}
          onClose={() => setToRemove(null)}
        >
          {removal.ask(toRemove)}
        </Confirm>
      )}
    </Card>
  );
}
