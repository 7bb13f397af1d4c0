// Settings that point clients (agents, SDKs, curl) to this gateway, for a model of the catalog; and the list of models.

import { useState } from 'preact/hooks';
import { curlCommand } from '../api.ts';
import { orNone, spaced, whole } from '../logic/format.ts';
import { snippetsFor } from '../logic/snippets.ts';
import { CodeBlock } from '../parts/copy.tsx';
import { Link } from '../parts/link.tsx';
import { type Model, ModelChoice, WithModels } from '../parts/model-choice.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';

const COLUMNS: readonly Column<Model>[] = [
  {
    name: 'Model',
    raw: ({ id }) => id,
    show: ({ id, display_name: name }) => (
      <>
        <code>{id}</code>
        <span class="note">{name}</span>
      </>
    ),
  },
  { name: 'Kind', raw: ({ kind }) => kind },
  numberColumn('Context', ({ context_length: size }) => size, whole, { isExtra: true }),
  numberColumn('Input', ({ pricing }) => pricing?.input, orNone),
  numberColumn('Output', ({ pricing }) => pricing?.output, orNone),
  {
    name: 'APIs',
    raw: ({ apis }) => apis.join(' '),
    show: ({ apis }) => spaced(apis.join(', ')),
    isExtra: true,
  },
];

export function Connect() {
  const [chosen, setChosen] = useState('');
  return (
    <Page
      title="Connect"
      lead={
        <>
          One address and one key for every client. The key is in the variable <code>TOLLGATE_KEY</code>;{' '}
          <Link to="keys">make one</Link> if you have none.
        </>
      }
      commands={[curlCommand('/v1/models'), `tollgate connect claude-code --url ${location.origin}`]}
    >
      <WithModels>
        {(models) => {
          const model = chosen || (models.find(({ kind }) => kind === 'text') ?? models[0])?.id || '';
          return (
            <>
              <div class="filters">
                <ModelChoice models={models} value={model} onValue={setChosen} />
              </div>
              <div class="grid">
                {snippetsFor(location.origin, model).map(({ name, note, code }) => (
                  <Card key={name} title={name} note={note}>
                    <CodeBlock code={code} label={name} />
                  </Card>
                ))}
              </div>
              <Card title="Models" note="Prices are dollars per million tokens.">
                <Table caption="Models" columns={COLUMNS} rows={models} />
              </Card>
            </>
          );
        }}
      </WithModels>
    </Page>
  );
}
